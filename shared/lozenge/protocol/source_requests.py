"""What is deployed of file sources, and what operators request of them: the records of one compacted topic.

`lozenge source` writes releases (`night/r3`) and requests (`night`). The instances of a source follow their request.
"""

from typing import Annotated

import msgspec

from lozenge.file_sources.definition import NAME, FileSource
from lozenge.file_sources.topics import FILE_PARTITIONS
from lozenge.protocol.declared_releases import DeclaredRelease, Deployed, Moment, ReleaseRequest, RowFormat, now

MOST_INSTANCES = FILE_PARTITIONS
"""Each file belongs to a partition, and each partition to one instance."""


class SourceRelease(DeclaredRelease, frozen=True):
    """A release of a file source: what its `source.toml` declared."""

    owner: str = msgspec.field(name="source")

    def definition(self) -> FileSource:
        """The file source; raises ValueError for a declaration of another version of the platform."""
        return FileSource.model_validate(self.declaration)


class FileRetry(msgspec.Struct, frozen=True):
    """A failed file that is to be tried again at its next row, or `from_start`."""

    from_start: bool = False
    at: Moment = msgspec.field(default_factory=now)


class SourceRequest(ReleaseRequest, frozen=True):
    """What is requested of a deployed file source, and how fast it copies.

    `rate` is the largest number of rows a second of all instances together; 0 is none. `retries` are by path.
    """

    owner: str = msgspec.field(name="source")
    instances: Annotated[int, msgspec.Meta(ge=1, le=MOST_INSTANCES)] = 1
    rate: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    retries: dict[str, FileRetry] = msgspec.field(default_factory=dict)


SourceRow = SourceRelease | SourceRequest
SourceState = Deployed[SourceRelease, SourceRequest]
SOURCES = RowFormat(NAME, SourceRelease, SourceRequest)
"""The records of the topic: by source."""
