"""Jobs on a real broker without Spark: the loop, its claims, commits and state are real, and the query is Python.

The query reads a topic, and evaluates the rule or the fold of `traffic`. So a test of a crash or a cut-over
costs milliseconds of a processor, where Spark would cost seconds.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, TopicPartition
from pyspark.sql import SparkSession

from lozenge import Event, Fold, Settings, State, fold
from lozenge.contracts.avro import Codec, schema_id
from lozenge.detector.events import Alert
from lozenge.detector.loader import LoadedDetector
from lozenge.detector.tables.reference_tables import ReferenceTables
from lozenge.job.batch_result import BatchResult, DraftAlert, FailedRecord
from lozenge.job.drivers.driver import (
    Admission,
    AtBoundary,
    BatchPlanned,
    BatchProcessed,
    Capabilities,
    QueryEvent,
    QueryFailed,
    QueryPlan,
)
from lozenge.job.lifecycle.job_factory import job_parts
from lozenge.job.lifecycle.job_parts import JobParts
from lozenge.job.lifecycle.recovery import Recovery
from lozenge.job.operators.fold_operator import FoldOperator
from lozenge.job.operators.operator import Operator
from lozenge.job.operators.rule_operator import RuleOperator
from lozenge.job.query.poison_search import Ranges
from lozenge.job.settings import JobSettings
from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.app_metrics import JobMetrics
from lozenge.protocol.coverage import Versions
from tests.merged_streams import SIGN_IN
from tests.streams import event_codec

Message = tuple[int, int, bytes]
"""Partition, offset and value of a record."""
CODECS = {codec.schema.id: codec for codec in (event_codec(), Codec(SIGN_IN.event_schema))}
END_SECONDS = 0.5
"""How long a batch looks for the end of its partitions, after its first record."""


def parts_of(
    loaded: LoadedDetector, job: JobSettings, kafka: KafkaSettings, spark: SparkSession | None, metrics: JobMetrics
) -> JobParts:
    """The parts of a job of `loaded`. Without a session its query is Python: a rule, or a fold that counts."""
    session: Any = spark
    parts = job_parts(loaded, job, kafka, session, metrics)
    if spark is not None:
        return parts
    builder: Any = PythonBuilder(loaded, parts, kafka)
    parts.planner.builder = builder
    recovery = HealthyRecovery(parts.identity.app, builder, parts.planner.checkpoint, kafka, session, parts.reporter)
    return replace(parts, driver=TopicDriver(kafka, parts.identity.input, builder), recovery=recovery)


class HealthyRecovery(Recovery):
    """There is no JVM that could have died."""

    def _require_healthy(self) -> None:
        pass


class Above(RuleOperator):
    """An alert for every event above a limit."""

    def __init__(self, limit: float) -> None:
        self._limit = limit

    def process(self, batch: pa.Table) -> BatchResult:
        return BatchResult([_alert(row) for row in batch.to_pylist() if row["amount"] > self._limit])


def _alert(row: Mapping[str, Any]) -> DraftAlert:
    at, position = row["event_time"], (row["_input_partition"], row["_input_offset"])
    return DraftAlert(Alert(reason=row["event_id"]), row["card_id"], row["event_id"], at, at, position, position)


class Count(State):
    n: int = 0


def each(state: Count, event: Event, settings: Settings) -> Iterator[Alert]:
    """An alert for each event, with its number among those of its card."""
    state.n += 1
    yield Alert(reason=f"{event.card_id} {state.n}")


_NO_FRAME: Any = None
COUNTING: Fold[Count] = fold(_NO_FRAME, by="card_id", state=Count, step=each, expires=timedelta(days=1))


class PythonBuilder:
    """Makes the operator, and evaluates ranges, as `QueryBuilder` does by Spark."""

    def __init__(self, loaded: LoadedDetector, parts: JobParts, kafka: KafkaSettings) -> None:
        self._loaded, self._identity, self._kafka = loaded, parts.identity, kafka
        self.settings: Any = parts.specs.config.settings
        self.excluded: list[FailedRecord] = []
        self.events = self  # it decodes too
        self.tables = ReferenceTables({}, Path())

    def check(self, settings: Settings, partitions: int) -> None:
        """It can be planned with any settings."""

    def operator(self, offsets: Mapping[int, int], max_batch: int | None, partitions: int) -> Operator:
        if self._loaded.declaration.stateless:
            return Above(getattr(self.settings, "limit", 0.0))
        return FoldOperator(COUNTING, self.settings, "card_id", self._identity.state, offsets.keys())

    @property
    def versions(self) -> Versions:
        return Versions(self.settings.digest)

    def learn(self) -> set[int]:
        return set()

    def evaluate(self, ranges: Ranges) -> None:
        for partition, (start, end) in ranges.items():
            with reading(self._kafka, self._identity.input, {partition: start}) as topic:
                read = start
                while read < end:
                    messages, ends = topic.read(5.0)
                    read = ends.get(partition, read)
                    self.table([message for message in messages if message[1] < end])

    def exclude(self, failed: FailedRecord) -> None:
        self.excluded.append(failed)

    def table(self, messages: list[Message]) -> pa.Table:
        """The events of `messages` as Spark would hand them over; raises ValueError on one that is no event."""
        skipped = {record.position for record in self.excluded}
        rows = []
        for partition, offset, value in messages:
            if (partition, offset) in skipped:
                continue
            try:
                found = CODECS[schema_id(value)].decode(value)
            except Exception as error:  # whatever the codec raises
                raise ValueError(f"no event at {partition}:{offset}") from error
            named = {name: found.get(name) for name in ("event_id", "event_time", "card_id", "amount")}
            position = {"_input_partition": partition, "_input_offset": offset}
            rows.append(named | position | {"_input_traceparent": None, "_input_arrived": None})
        return pa.Table.from_pylist(rows) if rows else _NO_ROWS


_NO_ROWS = pa.table(
    {
        "event_id": pa.array([], pa.string()),
        "event_time": pa.array([], pa.timestamp("us", "UTC")),
        "card_id": pa.array([], pa.string()),
        "amount": pa.array([], pa.decimal128(18, 2)),
        "_input_partition": pa.array([], pa.int64()),
        "_input_offset": pa.array([], pa.int64()),
        "_input_traceparent": pa.array([], pa.string()),
        "_input_arrived": pa.array([], pa.timestamp("us", "UTC")),
    }
)


class TopicReader:
    """Reads a topic from some offsets on."""

    def __init__(self, kafka: KafkaSettings, topic: str, begins: Mapping[int, int]) -> None:
        self._consumer = Consumer(
            kafka.client(
                group_id="lozenge-sparkless",
                enable_auto_commit=False,
                enable_partition_eof=True,
                auto_offset_reset="error",
                isolation_level="read_committed",
                fetch_wait_max_ms=10,
            )
        )
        self._consumer.assign([TopicPartition(topic, p, offset) for p, offset in begins.items()])

    def __enter__(self) -> "TopicReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def read(self, seconds: float) -> tuple[list[Message], dict[int, int]]:
        """New records, and the offsets up to which they were read. Waits for at most `seconds` for the first one.

        As Spark it reads to the end, which may be after the markers of a transaction.
        """
        found: list[Message] = []
        ends: dict[int, int] = {}
        unfinished = set[int]()
        message, until = self._consumer.poll(seconds), time.monotonic() + END_SECONDS
        while message is not None:
            partition, offset, error = message.partition(), message.offset(), message.error()
            assert partition is not None
            assert offset is not None
            if error is None:
                found.append((partition, offset, message.value() or b""))
                ends[partition] = offset + 1
                unfinished.add(partition)
            elif error.code() == KafkaError._PARTITION_EOF:
                ends[partition] = offset
                unfinished.discard(partition)
            else:
                raise RuntimeError(error.str())
            left = max(0.0, until - time.monotonic()) if unfinished else 0.0
            message = self._consumer.poll(left)
        return found, ends


def reading(kafka: KafkaSettings, topic: str, begins: Mapping[int, int]) -> TopicReader:
    """A reader that is closed after the block."""
    return TopicReader(kafka, topic, begins)


class TopicDriver:
    """A query in the thread of the loop: a batch is what has come since the last one."""

    capabilities = Capabilities(standby=True, fenced=True, limited=True)
    warm = True

    def __init__(self, kafka: KafkaSettings, topic: str, builder: PythonBuilder) -> None:
        self._kafka, self._topic, self._builder = kafka, topic, builder
        self._reader: TopicReader | None = None
        self._planned: BatchPlanned | None = None
        self._processed: BatchProcessed | None = None

    @property
    def at_boundary(self) -> bool:
        planned = self._planned
        return planned is None or (planned.answer.done() and planned.answer.result(0) is Admission.ABANDON)

    def warm_up(self, ranges: Ranges, stopped: Callable[[], bool]) -> None:
        """Nothing has to be compiled."""

    def start(self, plan: QueryPlan) -> None:
        self._operator, self._read, self._number = plan.operator, dict(plan.begins), 0
        self._planned = self._processed = None
        self._reader = TopicReader(self._kafka, self._topic, plan.begins)

    def poll(self, seconds: float) -> Iterator[QueryEvent]:
        assert self._reader is not None
        if self._planned is None:
            self._messages, ends = self._reader.read(seconds)
            if {**self._read, **ends} == self._read:
                yield AtBoundary()
                return
            self._planned = BatchPlanned(self._number, {**self._read, **ends})
            yield self._planned
        planned = self._planned
        if not planned.answer.done() or planned.answer.result(0) is Admission.ABANDON:
            return
        if self._processed is None:
            try:
                result = self._operator.process(self._builder.table(self._messages))
            except ValueError as error:
                yield QueryFailed(error, planned.number, planned.ends)
                return
            self._processed = BatchProcessed(planned.number, planned.ends, result, 0.0)
            yield self._processed
        if self._processed.answer.done():
            self._read, self._number = dict(planned.ends), self._number + 1
            self._planned = self._processed = None

    def stop(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.__exit__()

    def rest(self) -> Iterator[QueryEvent]:
        return iter(())

    def close(self) -> None:
        self.stop()
