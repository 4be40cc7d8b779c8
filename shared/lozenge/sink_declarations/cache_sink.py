"""A sink of the kind `cache`: the latest record of each key into Redis or PostgreSQL."""

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from lozenge.durations import TextDuration
from lozenge.errors import ConfigError
from lozenge.process.env_settings import require_no_password, with_variables
from lozenge.sink_declarations.declared_sink import DeclaredSink

STORES = ("redis://", "rediss://", "unix://", "postgresql://")
_NO_STORE = f"name a server of one of these kinds: {', '.join(STORES)}"
_Positive = Annotated[TextDuration, Field(ge=timedelta(seconds=1))]


class CacheSink(DeclaredSink):
    """Of which records the latest is kept, and where.

    - `url`: of the server. `${NAME}` in it is a variable of the environment: a password is in no file.
    - `stream` with `key` (the stream's own, if none is named): its events. `alerts_of`: the alerts of a detector.
      `state_of`: the state of a fold, which is the feature that it computes for each key. One of the three.
    - `fields`: what is kept of a record; all of it, if none is named.
    - `ttl`: how long an entry stays without another record of its key; for ever, if nothing is said.
    - `tombstone_ttl`: how long a deleted entry is remembered, so that no older record brings it back.
    - `rows`: the largest number of records of one write.
    """

    kind: Literal["cache"]
    url: Annotated[str, Field(min_length=1)]
    stream: str = ""
    key: str = ""
    alerts_of: str = ""
    state_of: Annotated[str, Field(validate_default=True)] = ""
    fields: tuple[str, ...] = ()
    ttl: _Positive | None = None
    tombstone_ttl: _Positive = timedelta(days=1)
    rows: Annotated[int, Field(ge=1, le=10_000)] = 1_000

    @field_validator("url")
    @classmethod
    def _known(cls, url: str) -> str:
        if not url.startswith((*STORES, "${")):
            raise ValueError(_NO_STORE)
        return require_no_password(url)

    @field_validator("state_of")  # the last of the three
    @classmethod
    def _one_input(cls, state_of: str, info: ValidationInfo) -> str:
        given = info.data
        if sum(map(bool, (given.get("stream"), given.get("alerts_of"), state_of))) != 1:
            raise ValueError("name one of stream, alerts_of and state_of")
        if given.get("key") and not given.get("stream"):
            raise ValueError("`key` is a key of a stream")
        return state_of

    def address(self, environment: Mapping[str, str] = os.environ) -> str:
        """The URL with its variables; raises ConfigError for each that is missing, and for another kind of server."""
        url = with_variables(
            self.url,
            environment,
            doing=f"opening the store of the sink {self.name}",
            hint="set them where the sink, or this command, is started",
        )
        if not url.startswith(STORES):
            raise ConfigError(
                f"opening the store of the sink {self.name}: {self.url} is no server of a cache", hint=_NO_STORE
            )
        return url

    @property
    def reads(self) -> str:
        """What it reads, for people."""
        if self.stream:
            return f"events of {self.stream}" + (f" by {self.key}" if self.key else "")
        return f"alerts of {self.alerts_of}" if self.alerts_of else f"state of {self.state_of}"
