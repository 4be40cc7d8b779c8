"""The tables with which tools evaluate events again: lists and platform tables as they were for their events."""

from collections.abc import Mapping, Sequence
from functools import partial

from lozenge.detector.loader import LoadedDetector
from lozenge.detector.tables.reference_tables import ReferenceTables
from lozenge.errors import DetectorError, first_line
from lozenge.job.query.poison_search import Ranges
from lozenge.job.query.topic_versions import PresentTopic, recorded_topics
from lozenge.job.tools.recorded_versions import by_version
from lozenge.kafka.group_offsets import ConsumerGroup
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import topic_id
from lozenge.kafka.topic_reader import read_log
from lozenge.process.logging import logger
from lozenge.protocol.coverage import CoverageSegment, Interval, intervals


class RecordedTables:
    """The tables of one detector, by the coverage of its live job.

    `now` has the topics as they are. It is also for events that no release has processed, and for versions that cannot
    be read any more; `notes` name these. Raises DetectorError for a table without a good version, BrokerUnavailable.
    """

    def __init__(self, kafka: KafkaSettings, loaded: LoadedDetector) -> None:
        tables = loaded.declaration.tables
        self._kafka, self._loaded = kafka, loaded
        self.topics = {name: table.followed for name, table in tables.items() if table.followed}
        self.now = ReferenceTables(tables, loaded.folder, topics=partial(PresentTopic, kafka))
        self.now.take()
        self.notes: list[str] = []
        self._covered = _covered(kafka, loaded) if self.topics else []
        self._known: dict[tuple[tuple[str, str], ...], ReferenceTables] = {(): self.now}

    def parts(self, ranges: Ranges) -> Sequence[tuple[ReferenceTables, Ranges]]:
        """All of `ranges` in parts, each with its tables; the offsets of each partition are in their order."""
        return [(self._as_of(part.versions), part.ranges) for part in by_version(ranges, self._covered, self.topics)]

    def of(self, partition: int, offset: int) -> ReferenceTables:
        """The tables of one event."""
        [(tables, _)] = self.parts({partition: (offset, offset + 1)})
        return tables

    def _as_of(self, versions: Mapping[str, str]) -> ReferenceTables:
        key = tuple(sorted(versions.items()))
        if key not in self._known:
            self._known[key] = self._read(versions)
        return self._known[key]

    def _read(self, versions: Mapping[str, str]) -> ReferenceTables:
        recorded = recorded_topics(self._kafka, versions)
        tables = ReferenceTables(self._loaded.declaration.tables, self._loaded.folder, topics=recorded)
        try:
            tables.take()
        except DetectorError as error:
            note = f"its events get the table as it is now: {first_line(error)}"
            logger().warning(note)
            self.notes.append(note)
            return self.now
        return tables


def _covered(kafka: KafkaSettings, loaded: LoadedDetector) -> list[Interval]:
    """Which release processed what, and with which versions; nothing if none was ever live on this input."""
    source = loaded.stream.events(kafka.topics, loaded.key)
    segments = read_log(kafka, kafka.topics.detector(loaded.name).coverage, CoverageSegment)
    if not segments or segments[-1].input_id != topic_id(kafka, source):
        return []
    group = ConsumerGroup(kafka, loaded.name, source, kafka.partitions)
    committed = group.glance().offsets
    group.close()
    return intervals(segments, committed)
