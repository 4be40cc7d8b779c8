"""What is deployed of sinks and of tables of the platform, and what operators request of them, by app.

The records of one compacted topic: releases (`sink-archive/r3`) and requests (`sink-archive`). `lozenge sink`, `table`
and `up` write them. The processes of an app follow its request. Variables in a declaration stay `${NAME}`.
"""

from typing import Annotated, Any

import msgspec

from lozenge.apps import DECLARED
from lozenge.contracts.topics import MOST_PARTITIONS
from lozenge.protocol.declared_releases import Deployed, Moment, Number, RowFormat, name_of, now


class AppRelease(msgspec.Struct, frozen=True):
    """A release of a sink or a table: what its folder declared, and who made it, when and why."""

    app: str
    number: Number
    declaration: dict[str, Any]
    by: str = ""
    reason: str = ""
    at: Moment = msgspec.field(default_factory=now)

    @property
    def owner(self) -> str:
        """The app."""
        return self.app

    @property
    def name(self) -> str:
        """ "r3"."""
        return name_of(self.number)


class AppRequest(msgspec.Struct, frozen=True):
    """What is requested of a deployed app: its release, how many instances, and whether it is paused.

    `previous` is the release that was requested before this one, 0 if none was: it runs where this one cannot.
    """

    app: str
    release: Number
    previous: int = 0
    instances: Annotated[int, msgspec.Meta(ge=1, le=MOST_PARTITIONS)] = 1
    paused: bool = False
    by: str = ""
    at: Moment = msgspec.field(default_factory=now)

    @property
    def owner(self) -> str:
        """The app."""
        return self.app


AppRow = AppRelease | AppRequest
AppState = Deployed[AppRelease, AppRequest]
APPS = RowFormat(DECLARED, AppRelease, AppRequest)
"""The records of the topic: by app."""
