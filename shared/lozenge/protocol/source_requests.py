"""What is deployed of file sources, and what operators request of them: the records of one compacted topic.

`lozenge source` writes releases (`night/r3`) and requests (`night`). The instances of a source follow their request.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from lozenge.contracts.record import Record
from lozenge.file_sources.definition import NAME, FileSource
from lozenge.file_sources.topics import FILE_PARTITIONS

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
Number = Annotated[int, msgspec.Meta(ge=1)]
MOST_INSTANCES = FILE_PARTITIONS
"""Each file belongs to a partition, and each partition to one instance."""
_KEY = re.compile(rf"({NAME})(?:/r([1-9][0-9]*))?")


def _now() -> datetime:
    return datetime.now(UTC)


class SourceRelease(msgspec.Struct, frozen=True):
    """A release of a file source: what its `source.toml` declared, and who made it, when and why."""

    source: str
    number: Number
    declaration: dict[str, Any]
    by: str = ""
    reason: str = ""
    at: Moment = msgspec.field(default_factory=_now)

    @property
    def name(self) -> str:
        """ "r3"."""
        return f"r{self.number}"

    def definition(self) -> FileSource:
        """The file source; raises ValueError for a declaration of another version of the platform."""
        return FileSource.model_validate(self.declaration)


class FileRetry(msgspec.Struct, frozen=True):
    """A failed file that is to be tried again at its next row, or `from_start`."""

    from_start: bool = False
    at: Moment = msgspec.field(default_factory=_now)


class SourceRequest(msgspec.Struct, frozen=True):
    """What is requested of a deployed file source: its release, how many instances, and how fast.

    `rate` is the largest number of rows a second of all instances together; 0 is none. `retries` are by path.
    """

    source: str
    release: Number
    instances: Annotated[int, msgspec.Meta(ge=1, le=MOST_INSTANCES)] = 1
    paused: bool = False
    rate: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    retries: dict[str, FileRetry] = msgspec.field(default_factory=dict)
    by: str = ""
    at: Moment = msgspec.field(default_factory=_now)


SourceRow = SourceRelease | SourceRequest


def key_of(row: SourceRow) -> bytes:
    """The key of its record."""
    return (f"{row.source}/{row.name}" if isinstance(row, SourceRelease) else row.source).encode()


def record(topic: str, row: SourceRow) -> Record:
    """The row as a record of the topic."""
    return Record(topic, 0, key_of(row), msgspec.json.encode(row))


def decode(key: bytes, value: bytes) -> SourceRow:
    """The row in a record; raises ValueError for any other record."""
    found = _KEY.fullmatch(key.decode())
    if found is None:
        raise ValueError(f"its key is {key!r}")
    kind: type[SourceRow] = SourceRelease if found[2] else SourceRequest
    row: SourceRow = msgspec.json.decode(value, type=kind)
    if key_of(row) != key:
        raise ValueError(f"its key is {key!r}, and its value is of {key_of(row)!r}")
    return row


@dataclass(frozen=True)
class SourceState:
    """All that the topic says of one file source; `request` is None while it is not deployed."""

    source: str
    request: SourceRequest | None = None
    releases: Mapping[int, SourceRelease] = field(default_factory=dict)

    @property
    def release(self) -> SourceRelease | None:
        """The release that is to run."""
        return self.releases.get(self.request.release) if self.request is not None else None

    def next_number(self) -> int:
        """The number of the next release."""
        return max(self.releases, default=0) + 1


def state_of(source: str, rows: Mapping[str, SourceRow]) -> SourceState:
    """What the `rows`, by key, say of `source`."""
    request = rows.get(source)
    releases = [row for row in rows.values() if isinstance(row, SourceRelease) and row.source == source]
    return SourceState(
        source,
        request if isinstance(request, SourceRequest) else None,
        {row.number: row for row in sorted(releases, key=lambda row: row.number)},
    )


def deployed(rows: Mapping[str, SourceRow]) -> list[SourceState]:
    """The state of each file source that is deployed, by name."""
    names = sorted(row.source for row in rows.values() if isinstance(row, SourceRequest))
    return [state_of(name, rows) for name in names]
