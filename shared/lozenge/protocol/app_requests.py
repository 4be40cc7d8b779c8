"""What is deployed of sinks and of tables of the platform, and what operators request of them, by app.

The records of one compacted topic: releases (`sink-archive/r3`) and requests (`sink-archive`). `lozenge sink`, `table`
and `up` write them. The processes of an app follow its request. Variables in a declaration stay `${NAME}`.
"""

from typing import Annotated

import msgspec

from lozenge.apps import DECLARED
from lozenge.contracts.topics import MOST_PARTITIONS
from lozenge.protocol.declared_releases import DeclaredRelease, Deployed, ReleaseRequest, RowFormat


class AppRelease(DeclaredRelease, frozen=True):
    """A release of a sink or a table: what its folder declared."""

    owner: str = msgspec.field(name="app")


class AppRequest(ReleaseRequest, frozen=True):
    """What is requested of a deployed sink or table."""

    owner: str = msgspec.field(name="app")
    instances: Annotated[int, msgspec.Meta(ge=1, le=MOST_PARTITIONS)] = 1


AppRow = AppRelease | AppRequest
AppState = Deployed[AppRelease, AppRequest]
APPS = RowFormat(DECLARED, AppRelease, AppRequest)
"""The records of the topic: by app."""
