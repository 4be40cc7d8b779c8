"""A sink as it is declared: `downstream/sinks/<name>/sink.toml`."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lozenge.apps import sink_app
from lozenge.archive.settings import FILE_MB
from lozenge.contracts.display_text import VisibleText
from lozenge.durations import TextDuration
from lozenge.errors import ConfigError, UsageError
from lozenge.process.text_files import UnreadableText, problems_of, read_toml

DECLARATION = "sink.toml"
SINKS = Path("downstream", "sinks")
NAME = r"[a-z][a-z0-9_]{0,63}"


class Records(StrEnum):
    """What a sink may take: each has a topic of its own, or one for each stream, detector or app."""

    EVENTS = "events"
    ALERTS = "alerts"
    NOTIFICATIONS = "notifications"
    FEEDBACK = "feedback"
    DEAD_LETTERS = "dead-letters"


_Long = Annotated[TextDuration, Field(ge=timedelta(days=1))]


class SinkDeclaration(BaseModel):
    """`sink.toml`, and the name of its folder.

    - `records`: what it takes; of `streams` only these events, of all if none is named.
    - `buckets`: by the key of a record, within each day; a table keeps the number with which it began.
    - `commit_every`, `commit_mb`: a commit has at most so much, and waits no longer for more.
    - `file_mb`: the size of the files of a day that is over.
    - `retention`: how long rows are kept, by what they are; for ever where nothing is said.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=f"^{NAME}$")]
    kind: Literal["archive"]
    title: VisibleText
    owner: VisibleText
    records: Annotated[tuple[Records, ...], Field(min_length=1)] = tuple(Records)
    streams: tuple[str, ...] = ()
    buckets: Annotated[int, Field(ge=1, le=1024)] = 16
    commit_every: Annotated[TextDuration, Field(ge=timedelta(seconds=1), le=timedelta(hours=1))] = timedelta(minutes=1)
    commit_mb: Annotated[int, Field(ge=1, le=512)] = 64
    file_mb: Annotated[int, Field(ge=1, le=512)] = FILE_MB
    retention: Mapping[Records, _Long] = {}

    @property
    def app(self) -> str:
        """Its name in groups, dead letters, metrics and logs."""
        return sink_app(self.name)


def read_sink(folder: Path) -> SinkDeclaration:
    """The sink in `folder`; raises ConfigError with every problem of its file at once."""
    file = folder / DECLARATION
    try:
        given, places = read_toml(file)
        return SinkDeclaration(**{"name": folder.name, **_own(given)})
    except UnreadableText as error:
        problems = [f"{file.name}: {error}"]
    except ValidationError as error:
        problems = [places.said(file.name, problem) for problem in problems_of(error)]
    raise ConfigError(
        f"reading the sink {folder}: {len(problems)} problem(s)",
        problems=problems,
        hint="fix what is named; the page on the archive has every key",
    )


def sinks_in(project: Path) -> Iterator[SinkDeclaration]:
    """Every sink of a project; raises as `read_sink` does."""
    for file in sorted((project / SINKS).glob(f"*/{DECLARATION}")):
        yield read_sink(file.parent)


def sink_named(project: Path, name: str) -> SinkDeclaration:
    """The sink `name` of a project; raises UsageError if there is none, else as `read_sink` does."""
    folder = project / SINKS / name
    if (folder / DECLARATION).is_file():
        return read_sink(folder)
    have = ", ".join(file.parent.name for file in sorted((project / SINKS).glob(f"*/{DECLARATION}"))) or "none"
    raise UsageError(
        f"looking for the sink {name}: {folder} has no {DECLARATION}; there are {have}",
        hint="run this in the project; the page on the archive shows how a sink is declared",
    )


def _own(declared: Mapping[str, Any]) -> Mapping[str, Any]:
    """The content of the file; its name is that of the folder."""
    return {("name in the file" if key == "name" else key): value for key, value in declared.items()}
