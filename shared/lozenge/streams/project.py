"""The streams of a project, or of a release: one folder, read once and passed on as a value.

`LOZENGE_STREAMS` names the folder. Without it that is `upstream/streams`, in the present folder or the nearest above,
or else in the nearest above the detector that is asked about.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lozenge.errors import ConfigError, UsageError
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.folder import COPY, DECLARATION, MAPPINGS, SAMPLES, read, readable

STREAMS_VARIABLE = "LOZENGE_STREAMS"
_USUAL = Path("upstream", "streams")


@dataclass(frozen=True)
class Streams:
    """The streams of `folder`, by name: the `sound` ones, and what is wrong with each of the others."""

    folder: Path
    sound: tuple[StreamDefinition, ...]
    wrong: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def load(cls, near: Path | None = None) -> "Streams":
        """Those of this process, which may be about the folder `near`; a stream that is wrong is no problem of others.

        Raises ConfigError if there is none.
        """
        return cls._read(streams_folder(near))

    @classmethod
    def of(cls, folder: Path) -> "Streams":
        """Those of `folder`; raises ConfigError with every problem of every stream at once."""
        return cls(folder, cls._read(folder).definitions)

    @classmethod
    def _read(cls, folder: Path) -> "Streams":
        found, wrong = list[StreamDefinition](), dict[str, tuple[str, ...]]()
        for each in folders_in(folder):
            try:
                found.append(read(each))
            except ConfigError as error:
                wrong[each.name] = tuple(f"{each.name}/{problem}" for problem in error.problems or [error.message])
        if not found and not wrong:
            raise ConfigError(f"reading the streams of {folder}: it has none", hint=f"each has a {DECLARATION}")
        for names, problem in _shared_names(found):  # either may be the wrong one
            wrong |= {name: (*wrong.get(name, ()), problem) for name in names}
        return cls(folder, tuple(each for each in found if each.name not in wrong), wrong)

    @property
    def project(self) -> Path:
        """The folder of the project that has these streams in `upstream/streams`."""
        return _project_of(self.folder)

    @property
    def definitions(self) -> tuple[StreamDefinition, ...]:
        """All of them; raises ConfigError with every problem of every stream at once."""
        if self.wrong:
            raise self._refusal(self.wrong)
        return self.sound

    def mappings(self, stream: StreamDefinition) -> Path:
        """The folder of the mappings of a stream; the copy in a release has none."""
        return self.folder / stream.name / MAPPINGS

    def samples(self, stream: StreamDefinition) -> Path:
        """The folder of the samples of a stream, which may be missing."""
        return self.folder / stream.name / SAMPLES

    def get(self, name: str = "") -> StreamDefinition:
        """The stream `name`; without a name the default one, or the only one there is.

        Raises UsageError, and ConfigError with all that is wrong with it.
        """
        only = len(self.sound) + len(self.wrong) == 1
        for each in self.sound:
            if each.name == name or (not name and (each.default or only)):
                return each
        if name in self.wrong:
            raise self._refusal([name])
        if not name and self.wrong:  # one of them may be the default
            raise self._refusal(self.wrong)
        have = ", ".join(each.name for each in self.sound)
        looked = f"there is no stream {name}" if name else "no stream is named, and none is the default"
        raise UsageError(f"looking for a stream in {self.folder}: {looked}", hint=f"name one of {have}")

    def readable(self, name: str) -> tuple[StreamDefinition | None, tuple[str, ...]]:
        """The stream `name` as far as it can be read, for a check, and all that is wrong with its own files.

        It is None where schema, keys or tokens cannot be read. Raises UsageError if there is no such stream.
        """
        if name in self.wrong:
            return readable(self.folder / name)[0], self.wrong[name]
        return self.get(name), ()

    def of_app(self, app: str) -> StreamDefinition:
        """The stream that `app` normalises; raises UsageError, and ConfigError if a stream that is wrong may be it."""
        for each in self.sound:
            if each.app == app:
                return each
        if self.wrong:
            raise self._refusal(self.wrong)
        have = ", ".join(each.app for each in self.sound)
        raise UsageError(f"looking for {app} in {self.folder}: no stream has that normaliser", hint=f"there are {have}")

    def _refusal(self, names: Iterable[str]) -> ConfigError:
        return ConfigError(
            f"reading the streams of {self.folder}",
            problems=list(dict.fromkeys(problem for name in names for problem in self.wrong[name])),
            hint="fix what is named; `lozenge stream ls` reads them again",
        )


def project_folder() -> Path:
    """The folder of this process's project; raises ConfigError if there is none."""
    return _project_of(streams_folder())


def _project_of(streams: Path) -> Path:
    return streams.absolute().parents[len(_USUAL.parts) - 1]


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


def _shared_names(found: list[StreamDefinition]) -> Iterator[tuple[tuple[str, str], str]]:
    """Two streams, and what both would write: the subject of a schema, a raw topic, ids, offsets."""
    for number, one in enumerate(found):
        for other in found[:number]:
            yield from (((one.name, other.name), problem) for problem in _clashes(one, other))


def _clashes(one: StreamDefinition, other: StreamDefinition) -> Iterator[str]:
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
