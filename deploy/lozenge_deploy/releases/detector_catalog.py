"""The detectors of a source tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lozenge.contracts.topics import Topic, Topics
from lozenge.detector.input_stream import stream_of
from lozenge.detector.manifest import Manifest, read
from lozenge.errors import UsageError
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.merged import merged_topics
from lozenge.streams.project import Streams


@dataclass(frozen=True)
class DetectorFolder:
    """A detector in the source tree."""

    name: str
    version: str
    declaration: Manifest
    folder: Path
    stream: StreamDefinition

    @property
    def key(self) -> str:
        """The entity of its alerts."""
        return self.stream.key(self.declaration.key)

    def input(self, topics: Topics) -> str:
        """The topic that it reads."""
        return self.stream.events(topics, self.declaration.key)


def detectors_in(folder: Path) -> list[DetectorFolder]:
    """Every detector below `folder`; raises ConfigError, UsageError if there is none."""
    files = sorted(folder.glob("[a-z]*/pyproject.toml"))
    if not files:
        raise UsageError(f"looking for detectors: {folder} has none", hint="each is a folder with a pyproject.toml")
    streams = Streams.load(folder)
    return [_found(file, streams) for file in files]


def detector_in(folder: Path) -> DetectorFolder:
    """The detector in `folder`; raises ConfigError."""
    return _found(folder / "pyproject.toml", Streams.load(folder))


def _found(file: Path, streams: Streams) -> DetectorFolder:
    name, version, declaration = read(file)
    stream = stream_of(declaration, streams, str(file))
    return DetectorFolder(name, version, declaration, file.parent, stream)


def streams_of(detectors: Sequence[DetectorFolder]) -> list[StreamDefinition]:
    """The streams of folders that these detectors read, alone or with others, by name."""
    read = [detector.stream for detector in detectors if not detector.stream.alerts_of]
    found = {each.name: each for stream in read for each in stream.members or (stream,)}
    return [found[name] for name in sorted(found)]


def rekeys_of(stream: StreamDefinition, detectors: Sequence[DetectorFolder]) -> tuple[str, ...]:
    """The keys, apart from its first, by which `stream` must also be written: its own, and those of its readers."""
    wanted = {d.key for d in detectors if d.stream == stream}
    return tuple(sorted({*stream.copies, *wanted} - {stream.primary}))


def merges_of(stream: StreamDefinition, detectors: Sequence[DetectorFolder]) -> tuple[str, ...]:
    """The keys by which `stream` must be merged with others for these detectors."""
    return tuple(sorted({d.stream.primary for d in detectors if stream in d.stream.members}))


def topics_of(topics: Topics, streams: Sequence[StreamDefinition], detectors: Sequence[DetectorFolder]) -> list[Topic]:
    """The topics of the streams, with the copies that they and these detectors need, and merged ones."""
    found = [topic for stream in streams for topic in stream.topics(topics, rekeys_of(stream, detectors))]
    merges = {key for stream in streams for key in merges_of(stream, detectors)}
    return [*found, *merged_topics(topics, streams, merges)]
