"""A sink of the kind `archive`: topics into Delta tables."""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from lozenge.durations import TextDuration
from lozenge.sink_declarations.declared_sink import DeclaredSink

FILE_MB = 256
"""Of a merged file: readers work best on 128 to 512 MB."""


class Records(StrEnum):
    """What an archive may take: each has a topic of its own, or one for each stream, detector or app."""

    EVENTS = "events"
    ALERTS = "alerts"
    NOTIFICATIONS = "notifications"
    FEEDBACK = "feedback"
    DEAD_LETTERS = "dead-letters"


_Long = Annotated[TextDuration, Field(ge=timedelta(days=1))]


class ArchiveSink(DeclaredSink):
    """What it takes, and how its tables are written.

    - `records`: what it takes; of `streams` only these events, of all if none is named.
    - `buckets`: by the key of a record, within each day; a table keeps the number with which it began.
    - `commit_every`, `commit_mb`: a commit has at most so much, and waits no longer for more.
    - `file_mb`: the size of the files of a day that is over.
    - `retention`: how long rows are kept, by what they are; for ever where nothing is said.
    """

    kind: Literal["archive"]
    records: Annotated[tuple[Records, ...], Field(min_length=1)] = tuple(Records)
    streams: tuple[str, ...] = ()
    buckets: Annotated[int, Field(ge=1, le=1024)] = 16
    commit_every: Annotated[TextDuration, Field(ge=timedelta(seconds=1), le=timedelta(hours=1))] = timedelta(minutes=1)
    commit_mb: Annotated[int, Field(ge=1, le=512)] = 64
    file_mb: Annotated[int, Field(ge=1, le=512)] = FILE_MB
    retention: Mapping[Records, _Long] = {}
