"""Reads the sinks of a project: `downstream/sinks/<name>/sink.toml`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from lozenge.errors import ConfigError, UsageError
from lozenge.process.text_files import UnreadableText, problems_of, read_toml
from lozenge.sink_declarations.archive_sink import ArchiveSink
from lozenge.sink_declarations.cache_sink import CacheSink
from lozenge.toml_places import Problem

DECLARATION = "sink.toml"
SINKS = Path("downstream", "sinks")
Sink = ArchiveSink | CacheSink
_SINK: TypeAdapter[Sink] = TypeAdapter(Annotated[Sink, Field(discriminator="kind")])


def read_sink(folder: Path) -> Sink:
    """The sink in `folder`; raises ConfigError with every problem of its file at once."""
    file = folder / DECLARATION
    try:
        given, places = read_toml(file)
        return _SINK.validate_python({"name": folder.name, **_own(given)})
    except UnreadableText as error:
        problems = [f"{file.name}: {error}"]
    except ValidationError as error:
        problems = [places.said(file.name, problem) for problem in map(_placed, problems_of(error))]
    raise ConfigError(
        f"reading the sink {folder}: {len(problems)} problem(s)",
        problems=problems,
        hint="fix what is named; the pages on the archive and on caches have every key",
    )


def sink_of(declaration: Mapping[str, Any]) -> Sink:
    """The sink of a release; raises ValueError for a declaration of another version of the platform."""
    return _SINK.validate_python(declaration)


def names_in(project: Path) -> list[str]:
    """The names of the sinks of a project, whether they are sound or not."""
    return [file.parent.name for file in sorted((project / SINKS).glob(f"*/{DECLARATION}"))]


def sinks_in(project: Path) -> Iterator[Sink]:
    """Every sink of a project; raises as `read_sink` does."""
    for name in names_in(project):
        yield read_sink(project / SINKS / name)


def sink_named(project: Path, name: str) -> Sink:
    """The sink `name` of a project; raises UsageError if there is none, else as `read_sink` does."""
    folder = project / SINKS / name
    if (folder / DECLARATION).is_file():
        return read_sink(folder)
    have = ", ".join(names_in(project))
    raise UsageError(
        f"looking for the sink {name}: {folder} has no {DECLARATION}",
        hint=f"{f'name one of {have}' if have else 'this project has no sink'}, or run this in the project that has "
        "it; the pages on the archive and on caches show how one is declared",
    )


def _placed(problem: Problem) -> Problem:
    """A kind that there is not, or none, is a problem of `kind`."""
    return problem if problem.place else Problem(("kind",), problem.sentence)


def _own(declared: Mapping[str, Any]) -> Mapping[str, Any]:
    """The content of the file; its name is that of the folder."""
    return {("name in the file" if key == "name" else key): value for key, value in declared.items()}
