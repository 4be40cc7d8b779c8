"""What is deployed of file sources, and what operators request of them: the records of one compacted topic.

`lozenge source` writes releases (`night/r3`) and requests (`night`). The instances of a source follow their request.
"""

from typing import Annotated, Any

import msgspec

from lozenge.file_sources.definition import NAME, FileSource
from lozenge.file_sources.topics import FILE_PARTITIONS
from lozenge.protocol.declared_releases import Deployed, Moment, Number, RowFormat, name_of, now

MOST_INSTANCES = FILE_PARTITIONS
"""Each file belongs to a partition, and each partition to one instance."""


class SourceRelease(msgspec.Struct, frozen=True):
    """A release of a file source: what its `source.toml` declared, and who made it, when and why."""

    source: str
    number: Number
    declaration: dict[str, Any]
    by: str = ""
    reason: str = ""
    at: Moment = msgspec.field(default_factory=now)

    @property
    def owner(self) -> str:
        """The file source."""
        return self.source

    @property
    def name(self) -> str:
        """ "r3"."""
        return name_of(self.number)

    def definition(self) -> FileSource:
        """The file source; raises ValueError for a declaration of another version of the platform."""
        return FileSource.model_validate(self.declaration)


class FileRetry(msgspec.Struct, frozen=True):
    """A failed file that is to be tried again at its next row, or `from_start`."""

    from_start: bool = False
    at: Moment = msgspec.field(default_factory=now)


class SourceRequest(msgspec.Struct, frozen=True):
    """What is requested of a deployed file source: its release, how many instances, and how fast.

    `rate` is the largest number of rows a second of all instances together; 0 is none. `retries` are by path.
    `previous` is the release that was requested before this one, 0 if none was: it runs where this one cannot.
    """

    source: str
    release: Number
    instances: Annotated[int, msgspec.Meta(ge=1, le=MOST_INSTANCES)] = 1
    paused: bool = False
    rate: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    retries: dict[str, FileRetry] = msgspec.field(default_factory=dict)
    by: str = ""
    at: Moment = msgspec.field(default_factory=now)
    previous: int = 0

    @property
    def owner(self) -> str:
        """The file source."""
        return self.source


SourceRow = SourceRelease | SourceRequest
SourceState = Deployed[SourceRelease, SourceRequest]
SOURCES = RowFormat(NAME, SourceRelease, SourceRequest)
"""The records of the topic: by source."""
