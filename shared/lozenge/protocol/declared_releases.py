"""What is released as a declaration: releases by number, and the request that says which of them is to run.

The records of one compacted topic: a release (`night/r3`) never changes, and a request (`night`) is replaced.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from lozenge.contracts.record import Record

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
Number = Annotated[int, msgspec.Meta(ge=1)]


def now() -> datetime:
    """When a release or a request is made."""
    return datetime.now(UTC)


class DeclaredRelease(msgspec.Struct, frozen=True):
    """A release: what was declared, who made it, when and why. A kind of it says what its record calls the `owner`.

    `follows` is the release that was requested when this one was made, 0 if none was or the record does not say it.
    """

    owner: str
    number: Number
    declaration: dict[str, Any]
    by: str = ""
    reason: str = ""
    at: Moment = msgspec.field(default_factory=now)
    follows: int = 0

    @property
    def name(self) -> str:
        """ "r3"."""
        return name_of(self.number)


class ReleaseRequest(msgspec.Struct, frozen=True):
    """What is requested of `owner`: the number of its `release`, how many instances, and whether it is paused.

    `previous` is the release that was requested before this one, 0 if none was: it runs where this one cannot.
    """

    owner: str
    release: Number
    previous: int = 0
    instances: Number = 1
    paused: bool = False
    by: str = ""
    at: Moment = msgspec.field(default_factory=now)


R = TypeVar("R", bound=DeclaredRelease)
Q = TypeVar("Q", bound=ReleaseRequest)


def name_of(number: int) -> str:
    """ "r3"."""
    return f"r{number}"


@dataclass(frozen=True)
class Deployed(Generic[R, Q]):
    """All that a topic says of one owner; `request` is None while it is not deployed."""

    name: str
    request: Q | None = None
    releases: Mapping[int, R] = field(default_factory=dict)

    @property
    def release(self) -> R | None:
        """The release that is to run."""
        return self.releases.get(self.request.release) if self.request is not None else None

    @property
    def to_run(self) -> list[R]:
        """The release that is to run, and after it the one that runs if that cannot."""
        numbers = [self.request.release, self.request.previous] if self.request is not None else []
        return [self.releases[number] for number in numbers if number in self.releases]

    def next_number(self) -> int:
        """The number of the next release."""
        return max(self.releases, default=0) + 1


AnyState = Deployed[Any, Any]
"""The state of an owner of any kind."""


@dataclass(frozen=True)
class RowFormat(Generic[R, Q]):
    """How releases and requests are the records of a topic; `owner` is the pattern of whose they may be."""

    owner: str
    release: type[R]
    request: type[Q]

    def key_of(self, row: R | Q) -> bytes:
        """The key of its record."""
        name = f"/{name_of(row.number)}" if isinstance(row, self.release) else ""
        return f"{row.owner}{name}".encode()

    def record(self, topic: str, row: R | Q) -> Record:
        """The row as a record of the topic."""
        return Record(topic, 0, self.key_of(row), msgspec.json.encode(row))

    def decode(self, key: bytes, value: bytes) -> R | Q:
        """The row in a record; raises ValueError for any other record."""
        found = re.fullmatch(rf"({self.owner})(?:/r([1-9][0-9]*))?", key.decode())
        if found is None:
            raise ValueError(f"its key is {key!r}")
        kind = self.release if found[2] else self.request
        row: R | Q = msgspec.json.decode(value, type=kind)
        if self.key_of(row) != key:
            raise ValueError(f"its key is {key!r}, and its value is of {self.key_of(row)!r}")
        return row

    def state_of(self, owner: str, rows: Mapping[str, R | Q]) -> Deployed[R, Q]:
        """What the `rows`, by key, say of `owner`."""
        request = rows.get(owner)
        releases = [row for row in rows.values() if isinstance(row, self.release) and row.owner == owner]
        return Deployed(
            owner,
            request if isinstance(request, self.request) else None,
            {row.number: row for row in sorted(releases, key=lambda row: row.number)},
        )

    def states(self, rows: Mapping[str, R | Q]) -> list[Deployed[R, Q]]:
        """The state of each owner that has a release or a request, by name."""
        return [self.state_of(name, rows) for name in sorted({row.owner for row in rows.values()})]

    def deployed(self, rows: Mapping[str, R | Q]) -> list[Deployed[R, Q]]:
        """The state of each owner that is deployed, by name."""
        return [state for state in self.states(rows) if state.request is not None]
