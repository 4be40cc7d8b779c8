"""A file source: the folder `upstream/sources/<name>/` with its `source.toml`, which says what is copied and how."""

import re
from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from lozenge.apps import file_source_app
from lozenge.contracts.display_text import VisibleText
from lozenge.contracts.topic_patterns import is_written_by_platform
from lozenge.durations import TextDuration
from lozenge.file_sources.column_types import TEXT, is_arrow_type, is_avro_type
from lozenge.toml_places import Problem

DECLARATION = "source.toml"
NAME = r"[a-z][a-z0-9_]*"
_WILDCARD = re.compile(r"[*?]")


class Format(StrEnum):
    """What a file is made of. The rows of the last two are lines, so a file of theirs may grow."""

    PARQUET = "parquet"
    AVRO = "avro"
    CSV = "csv"
    JSON_LINES = "json-lines"


class Complete(StrEnum):
    """When a file is complete: it has its name, a marker is next to it, or nobody has written to it for a while."""

    RENAME = "rename"
    MARKER = "marker"
    QUIET = "quiet"


class After(StrEnum):
    """What becomes of a file that was copied."""

    KEEP = "keep"
    DELETE = "delete"
    MOVE = "move"


class FileSource(BaseModel):
    """What `source.toml` declares.

    - `path`: a folder, or a pattern such as `/data/2026-*/*.parquet`; `**` is any number of folders. `s3://` is S3.
    - `topic`: the raw topic; the mapping of a stream reads it. `key`: the column that is the key of its records.
    - `columns`: each column of a file and its type, as the format names it; of CSV each is `text`.
    - `marker`: `{file}.done` is next to each file, `_SUCCESS` once in a folder. `quiet`: how long nobody has written.
    - `max_bad`: the largest share of rows of a file that cannot be read; with more of them the file fails.
    - `rows`: the largest number of rows of one transaction. `poll`: the time between two looks for new files.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=f"^{NAME}$")]
    title: VisibleText
    owner: VisibleText
    path: VisibleText
    format: Format
    topic: Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,200}$")]
    key: str = ""
    columns: dict[str, str] = {}
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    complete: Complete = Complete.QUIET
    quiet: TextDuration = timedelta(seconds=10)
    marker: Annotated[str, Field(min_length=1)] = "_SUCCESS"
    after: After = After.KEEP
    move_to: str = ""
    appendable: bool = False
    max_bad: Annotated[float, Field(ge=0, le=1)] = 0.01
    rows: Annotated[int, Field(ge=1, le=100_000)] = 10_000
    poll: TextDuration = timedelta(seconds=2)

    def problems(self) -> Iterator[Problem]:
        """What does not fit together, each with its key; a source with any of it is not run."""
        if is_written_by_platform(self.topic):
            yield Problem(("topic",), f"the platform writes {self.topic} itself: name a raw topic")
        if self.format is not Format.JSON_LINES and not self.columns:
            yield Problem(("columns",), "name each column of a file and its type; `lozenge source new` drafts them")
        if self.format is Format.JSON_LINES and self.columns:
            yield Problem(("columns",), "lines of JSON have none; the mapping says which fields it reads")
        for name, kind in self.columns.items():
            if problem := _type_problem(self.format, kind):
                yield Problem(("columns", name), problem)
        if self.columns and self.key and self.key not in self.columns:
            yield Problem(("key",), f"there is no column {self.key}; there are {', '.join(self.columns)}")
        if self.appendable and self.format not in (Format.CSV, Format.JSON_LINES):
            yield Problem(("appendable",), f"a file of {self.format} has an end; only CSV and lines of JSON can grow")
        if self.appendable and self.after is not After.KEEP:
            yield Problem(("appendable",), "a file that grows is kept")
        if (self.after is After.MOVE) != bool(self.move_to):
            yield Problem(("move_to",), 'the folder of files that were copied; it goes with after = "move"')
        if self.move_to and self.move_to.rstrip("/") == self.base.rstrip("/"):
            yield Problem(("move_to",), "another folder than that of the files")
        if self.poll.total_seconds() <= 0 or self.quiet.total_seconds() < 0:
            yield Problem(("poll",), "poll and quiet are longer than nothing")

    @property
    def app(self) -> str:
        """Its name among the apps of the platform: in logs, metrics, groups, and of its dead letters."""
        return file_source_app(self.name)

    @property
    def base(self) -> str:
        """The folder below which its files are: what is before the first wildcard."""
        found = _WILDCARD.search(self.path)
        return self.path if found is None else self.path[: found.start()].rpartition("/")[0] or "/"

    @property
    def pattern(self) -> str:
        """What the path of a file below `base` matches; all of a folder if no file is named."""
        return "*" if _WILDCARD.search(self.path) is None else self.path[len(self.base) :].lstrip("/")


def _type_problem(format: Format, kind: str) -> str:
    """What is wrong with the type of a column, or "" for nothing."""
    match format:
        case Format.PARQUET if not is_arrow_type(kind):
            return f'{kind} is no type of Arrow, such as "decimal128(18, 2)"; `lozenge source new` drafts them'
        case Format.AVRO if not is_avro_type(kind):
            return f"{kind} is neither the name of a type of Avro nor its JSON; `lozenge source new` drafts them"
        case Format.CSV if kind != TEXT:
            return f'each column of CSV is "{TEXT}", and not {kind}'
    return ""


def drift(declared: dict[str, str], found: dict[str, str]) -> list[str]:
    """How the columns of a file differ from those that are declared; order does not matter."""
    return [
        *(f"{name}: it is missing" for name in declared if name not in found),
        *(f"{name} ({kind}): it is not declared" for name, kind in found.items() if name not in declared),
        *(f"{n}: it is {found[n]}, declared as {k}" for n, k in declared.items() if n in found and found[n] != k),
    ]
