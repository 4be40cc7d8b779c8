"""Reads a detector's input as events: as a stream, or over bounded ranges."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from lozenge.contracts.schemas import Schema
from lozenge.detector.manifest import Manifest
from lozenge.errors import DecodeError
from lozenge.job.batch_result import FailedRecord
from lozenge.job.identity import Identity
from lozenge.job.query import canonical_events
from lozenge.job.query.poison_search import Ranges
from lozenge.kafka.schema_topic import announced
from lozenge.kafka.settings import KafkaSettings
from lozenge.spark import avro, kafka_source
from lozenge.streams.definition import StreamDefinition, is_event


class EventReader:
    """Decodes the records of one detector's input, without the `excluded` ones. New schemas are learned on request.

    Stream and range have the same expressions, so a record that fails in one fails in the other. In a merged topic, the
    events of streams that this detector does not read are skipped.
    """

    def __init__(self, identity: Identity, declaration: Manifest, kafka: KafkaSettings, spark: SparkSession) -> None:
        self._identity, self._declaration = identity, declaration
        self._kafka, self._spark = kafka, spark
        self._learned: list[Schema] = []
        self._foreign: set[int] | None = None
        self.excluded: list[FailedRecord] = []

    def learn(self) -> set[int]:
        """Reads the event schemas that have been announced; returns the ids of all known schemas."""
        own = {schema.name for schema in self._stream.schemas}
        found = announced(self._kafka, self._stream.schemas)
        self._learned = [schema for schema in found if schema.name in own]
        self._foreign = {schema.id for schema in found if schema.name not in own and is_event(schema)}
        return {s.id for s in self._schemas} | (self._foreign if self._stream.members else set())

    def stream(self, offsets: Mapping[int, int], max_batch: int | None) -> DataFrame:
        """The events from `offsets` on, at most `max_batch` offsets in a batch; None for Real-Time Mode.

        A detector with a lateness gets a watermark.
        """
        lateness = self._declaration.lateness
        starts = [offsets] if lateness is None else [{p: o} for p, o in sorted(offsets.items())]
        share = max(1, max_batch // len(starts)) if max_batch is not None else None
        streams = [self._events(self._source(start, share)) for start in starts]
        return streams[0] if lateness is None else canonical_events.watermarked(streams, lateness)

    def bounded(self, ranges: Ranges) -> DataFrame:
        """The events of `ranges`, as a DataFrame that is not a stream."""
        return self._events(self.records(ranges))

    def exclude_malformed(self, ranges: Ranges) -> list[FailedRecord]:
        """Excludes the records of `ranges` that are no events, and returns them; one read finds them all.

        No code of the detector has seen them, so there may be any number of them.
        """
        rows = canonical_events.malformed(self._kept(self.records(ranges)), self._schemas, self._stream).collect()
        found = [FailedRecord(row.partition, row.offset, DecodeError(_words(row.problem))) for row in rows]
        self.excluded += found
        return found

    def records(self, ranges: Ranges) -> DataFrame:
        """The Kafka records of `ranges`, in the columns `kafka_source.RECORDS`."""
        return kafka_source.bounded(self._spark, self._kafka, self._identity.app, self._identity.input, ranges)

    @property
    def _stream(self) -> StreamDefinition:
        return self._identity.stream

    @property
    def _schemas(self) -> list[Schema]:
        """Every event schema that it knows; an announced one has the id that is announced."""
        known = {s.id: s for s in (*self._stream.schemas, *self._learned)}
        return list(known.values())

    def _source(self, start: Mapping[int, int], max_batch: int | None) -> DataFrame:
        return kafka_source.stream(self._spark, self._kafka, self._identity.app, self._identity.input, start, max_batch)

    def _events(self, raw: DataFrame) -> DataFrame:
        return canonical_events.events(self._kept(raw), self._schemas, self._stream, self._identity.key_column)

    def _kept(self, raw: DataFrame) -> DataFrame:
        if self._stream.members:
            if self._foreign is None:
                self.learn()  # else each start would fail on the first event of a stream that others read
            raw = canonical_events.without_schemas(raw, self._foreign or ())
        return canonical_events.without(raw, [(p.partition, p.offset) for p in self.excluded])


def _words(problem: str) -> str:
    return avro.words_of(problem) or problem
