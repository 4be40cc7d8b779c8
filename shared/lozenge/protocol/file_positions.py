"""How far each file of a file source was copied: the records of one compacted topic.

The key is the file's path. A record is written in the transaction of the rows that it counts.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import msgspec

from lozenge.contracts.record import Record
from lozenge.file_sources.topics import partition_of_file


class FileState(StrEnum):
    """COPYING: more rows follow. DONE: all were copied. FAILED: `reason` says why no more are, until it is retried."""

    COPYING = "copying"
    DONE = "done"
    FAILED = "failed"


class Place(msgspec.Struct, frozen=True):
    """Where the next row is: `rows` of the file were read, those that are bad among them.

    `group` is the row group or block it is in, `within` how many rows of that were read, `offset` its byte in a file
    of lines.
    """

    rows: Annotated[int, msgspec.Meta(ge=0)] = 0
    group: Annotated[int, msgspec.Meta(ge=0)] = 0
    within: Annotated[int, msgspec.Meta(ge=0)] = 0
    offset: Annotated[int, msgspec.Meta(ge=0)] = 0


class FileId(msgspec.Struct, frozen=True):
    """What a file is known by: size in bytes, time of the last change, and a digest of its first and last 64 KB."""

    size: Annotated[int, msgspec.Meta(ge=0)]
    modified_ns: int
    digest: str = ""

    def is_same(self, other: "FileId") -> bool:
        """Whether size and time are equal; the digest is read only before a file is."""
        return (self.size, self.modified_ns) == (other.size, other.modified_ns)


def _now() -> datetime:
    return datetime.now(UTC)


class FilePosition(msgspec.Struct, frozen=True):
    """What became of the file `path`: `place` is where the next row is, `bad` rows are dead letters.

    `total` is the number of its rows, where the format says it before they are read; 0 where it does not.
    """

    path: str
    id: FileId
    state: FileState
    place: Place = Place()
    bad: Annotated[int, msgspec.Meta(ge=0)] = 0
    total: Annotated[int, msgspec.Meta(ge=0)] = 0
    reason: str = ""
    instance: str = ""
    at: Annotated[datetime, msgspec.Meta(tz=True)] = msgspec.field(default_factory=_now)

    @property
    def partition(self) -> int:
        """Of the topic; its owner copies the file."""
        return partition_of_file(self.path)


def record(topic: str, position: FilePosition) -> Record:
    """The position as a record of the topic."""
    return Record(topic, position.partition, position.path.encode(), msgspec.json.encode(position))


def decode(key: bytes, value: bytes) -> FilePosition:
    """The position in a record; raises ValueError for any other record."""
    found = msgspec.json.decode(value, type=FilePosition)
    if found.path.encode() != key:
        raise ValueError(f"its key is {key!r}, and its value is of {found.path}")
    return found
