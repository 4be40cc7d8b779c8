"""Reads a release of a stream: where its events go, and its mappings on the raw topics of this platform."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import SparkSession

from lozenge.errors import ConfigError
from lozenge.kafka import topic_admin
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.stream_releases import FOLDER, ReleaseId, StreamState, release_name
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.folder import MAPPINGS, read
from lozenge.streams.release_files import as_folder, digest_of, files_of
from lozenge_upstream.normalise import mapping_files
from lozenge_upstream.normalise.mapping_check import runnable
from lozenge_upstream.normalise.mapping_files import Mappings
from lozenge_upstream.normalise.output_records import StreamOutput


@dataclass(frozen=True)
class UpstreamRelease:
    """A release as upstream runs it. `partitions` is the partition count of every topic of the cluster.

    `texts` are those of a folder that was read where it is; none of what is kept already.
    """

    number: int
    id: ReleaseId
    target: StreamOutput
    mappings: Mappings
    partitions: Mapping[str, int]
    texts: Mapping[str, str] = field(default_factory=dict)

    def checked(self, spark: SparkSession) -> "UpstreamRelease":
        """The same without the mappings that `spark` cannot run, which are refused."""
        return replace(self, mappings=runnable(spark, self.mappings))

    @property
    def waiting(self) -> frozenset[str]:
        """The raw topics of mappings that are not in force: their records wait."""
        return frozenset(each.topic for each in self.mappings.refused if each.topic in self.partitions)

    @property
    def topics(self) -> list[str]:
        """Every raw topic that belongs to it."""
        return sorted({*(mapping.topic for mapping in self.mappings.usable), *self.waiting})

    @property
    def slots(self) -> int:
        """The tasks of its query in Real-Time Mode: one for each raw partition."""
        return sum(self.partitions[mapping.topic] for mapping in self.mappings.usable)

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that is wrong with its mappings."""
        return tuple(problem for refused in self.mappings.refused for problem in refused.problems)


class ReleaseReader:
    """Reads the releases of the stream in `folder`; `output` says where the events of its definition go."""

    def __init__(self, kafka: KafkaSettings, folder: Path, output: Callable[[StreamDefinition], StreamOutput]) -> None:
        self._kafka, self._folder, self._output = kafka, folder, output

    def read(self, state: StreamState, number: int) -> UpstreamRelease:
        """The release of that number; a wrong mapping is refused and takes nothing from the others.

        Raises ConfigError, TopicError, BrokerUnavailable.
        """
        release = state.kept(number)
        if release is None and number == FOLDER:
            texts = _texts(self._folder)
            id = ReleaseId(release_name(number), digest_of(texts) if texts else "")
            return replace(self._read(number, id, self._folder), texts=texts)
        if release is None:
            raise ConfigError(
                f"reading release {release_name(number)} of the stream {state.stream}: it is not kept",
                hint=f"`lozenge stream releases {state.stream}` lists those that are",
            )
        with as_folder(release.files, state.stream) as folder:
            return self._read(number, release.id, folder)

    def _read(self, number: int, id: ReleaseId, folder: Path) -> UpstreamRelease:
        target = self._output(read(folder))
        existing = topic_admin.partitions(self._kafka)
        topic_admin.check_topics(self._kafka, target.contracts())
        found = mapping_files.read(folder / MAPPINGS, target.stream).on(self._kafka.topics, existing)
        return UpstreamRelease(number, id, target, found, existing)


def _texts(folder: Path) -> dict[str, str]:
    try:
        return files_of(folder)
    except ConfigError:  # a file that is no text is one mapping that is refused
        return {}
