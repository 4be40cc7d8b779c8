"""The streams of a project, or of a release: one folder, read once and passed on as a value.

`LOZENGE_STREAMS` names the folder. Without it that is `upstream/streams`, in the present folder or the nearest above,
or else in the nearest above the detector that is asked about.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lozenge.errors import ConfigError, UsageError
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.folder import COPY, DECLARATION, MAPPINGS, SAMPLES, read

STREAMS_VARIABLE = "LOZENGE_STREAMS"
_USUAL = Path("upstream", "streams")


@dataclass(frozen=True)
class Streams:
    """The streams of `folder`, by name."""

    folder: Path
    definitions: tuple[StreamDefinition, ...]

    @classmethod
    def load(cls, near: Path | None = None) -> "Streams":
        """Those of this process, which may be about the folder `near`.

        Raises ConfigError with every problem of every stream at once.
        """
        return cls.of(streams_folder(near))

    @classmethod
    def of(cls, folder: Path) -> "Streams":
        """Those of `folder`; raises ConfigError with every problem of every stream at once."""
        found, wrong = list[StreamDefinition](), list[str]()
        for each in folders_in(folder):
            try:
                found.append(read(each))
            except ConfigError as error:
                wrong += [f"{each.name}/{problem}" for problem in error.problems or [error.message]]
        wrong += _shared_names(found)
        if wrong:
            raise ConfigError(
                f"reading the streams of {folder}",
                problems=wrong,
                hint="fix what is named; `lozenge stream ls` reads them again",
            )
        if not found:
            raise ConfigError(f"reading the streams of {folder}: it has none", hint=f"each has a {DECLARATION}")
        return cls(folder, tuple(found))

    def mappings(self, stream: StreamDefinition) -> Path:
        """The folder of the mappings of a stream; the copy in a release has none."""
        return self.folder / stream.name / MAPPINGS

    def samples(self, stream: StreamDefinition) -> Path:
        """The folder of the samples of a stream, which may be missing."""
        return self.folder / stream.name / SAMPLES

    def get(self, name: str = "") -> StreamDefinition:
        """The stream `name`; without a name the default one, or the only one there is. Raises UsageError."""
        for each in self.definitions:
            if each.name == name or (not name and (each.default or len(self.definitions) == 1)):
                return each
        have = ", ".join(each.name for each in self.definitions)
        looked = f"there is no stream {name}" if name else "no stream is named, and none is the default"
        raise UsageError(f"looking for a stream in {self.folder}: {looked}", hint=f"name one of {have}")

    def of_app(self, app: str) -> StreamDefinition:
        """The stream that `app` normalises; raises UsageError."""
        for each in self.definitions:
            if each.app == app:
                return each
        have = ", ".join(each.app for each in self.definitions)
        raise UsageError(f"looking for {app} in {self.folder}: no stream has that normaliser", hint=f"there are {have}")


def streams_folder(near: Path | None = None) -> Path:
    """The folder of this process's streams; raises ConfigError if there is none."""
    if given := os.environ.get(STREAMS_VARIABLE, "").strip():
        if not Path(given).is_dir():
            raise ConfigError(
                f"reading {STREAMS_VARIABLE}: {given} is no folder", hint="name the folder of the streams"
            )
        return Path(given).absolute()
    here = Path.cwd()
    starts = (here, *([near.absolute()] if near is not None else []))
    for folder in (each for start in starts for each in (start, *start.parents)):
        if (found := folder / _USUAL).is_dir():
            return found
    raise ConfigError(
        f"looking for streams: neither {here} nor a folder above has {_USUAL}",
        hint=f"run this in the project, or name the folder by {STREAMS_VARIABLE}",
    )


def folders_in(folder: Path) -> Iterator[Path]:
    """The folder of each stream, by name."""
    for each in sorted(folder.iterdir()):
        if (each / DECLARATION).is_file() or (each / COPY).is_file():
            yield each


def _shared_names(found: list[StreamDefinition]) -> Iterator[str]:
    """What two streams would write over each other: the subject of a schema, a raw topic, ids, offsets."""
    for number, one in enumerate(found):
        for other in found[:number]:
            name = f"{one.avro['namespace']}.{one.avro['name']}"
            if name == f"{other.avro['namespace']}.{other.avro['name']}":
                yield f"{one.name}/event.avsc: {other.name} has a record {name} too: give it another name"
            for topic in {*one.raw_topics} & {*other.raw_topics}:
                yield f"{one.name}/mappings: {other.name} reads {topic} too: a raw topic belongs to one stream"
            for source in {*one.sources} & {*other.sources}:
                yield f"{one.name}/mappings: {other.name} has a source {source} too: ids of events could be equal"
            if one.app == other.app:
                yield f"{one.name}/{DECLARATION}: app: the normaliser of {other.name} is {one.app} too"
            if one.default and other.default:
                yield f"{one.name}/{DECLARATION}: default: {other.name} is the default too"
