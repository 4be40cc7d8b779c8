"""Runs one detector until it is told to stop.

The order, in numbers that come back below:
1. claim: refuse if a newer generation committed, fence earlier writers, read the group's offsets, look
   again, and write the claim down;
2. restore the state that the state topic holds;
3. start the query at the group's offsets (an aggregate's own checkpoint continues if it is the one that
   committed last);
4. per batch: judge, then commit alerts, dead letters, state and offsets in one transaction;
5. when a batch fails: learn a new schema, shrink the batch, or find the poison; then start the query
   again in the same session. Whatever else happens ends the process, and a restart is always safe.
"""

import re
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from lozenge import topics
from lozenge.admin import check_topics, partitions
from lozenge.errors import DecodeError, DetectError, DetectorError, LozengeError
from lozenge.fold import Fold
from lozenge.job import source
from lozenge.job.checkpoint import Checkpoint
from lozenge.job.crossings import Crossings
from lozenge.job.fold_host import FoldHost
from lozenge.job.identity import Identity
from lozenge.job.output import AlertWriter, Finding, dead_letter_record, from_row
from lozenge.job.poison import Poisoned, Ranges, find_poison, first_line
from lozenge.job.positions import Group, Stamp, refuse_if_stale
from lozenge.job.settings import JobSettings, detector_settings
from lozenge.job.transaction import Record, TransactionalWriter
from lozenge.kafka import KafkaSettings
from lozenge.loading import Loaded
from lozenge.logs import logger
from lozenge.metrics import Metrics
from lozenge.registry import learn
from lozenge.schemas import packaged
from lozenge.spark_avro import UNKNOWN_SCHEMA
from lozenge.tables import load, version

STOP_SECONDS = 20.0
RETOUCH_SECONDS = 6 * 3600.0
"""An idle group commits again this often, so that its offsets never expire."""


class Runner:
    """One detector's job. `run` returns after `stop`, or raises what a person or a restart must mend."""

    def __init__(
        self, loaded: Loaded, job: JobSettings, kafka: KafkaSettings, spark: SparkSession, metrics: Metrics
    ) -> None:
        declaration = loaded.declaration
        self._loaded, self._job, self._kafka, self._spark, self._metrics = loaded, job, kafka, spark, metrics
        self._identity = Identity.of(loaded, job)
        self._settings = detector_settings(loaded, job.settings)
        self._partitions = topics.EVENT_PARTITIONS
        self._checkpoint = Checkpoint(job.work / self._identity.app / job.release / "checkpoint")
        self._group = Group(kafka, self._identity.app, self._identity.input, self._partitions)
        self._writer = TransactionalWriter(kafka, f"{self._identity.app}-{job.instance}")
        self._alerts = AlertWriter(
            self._identity,
            self._partitions,
            title=declaration.title,
            severity=declaration.severity,
            digest=self._settings.digest,
        )
        self._crossings = Crossings(self._alerts, self._identity.state, self._partitions)
        self._host: FoldHost | None = None
        self._schemas = [s for s in packaged() if s.name == "event"]
        self._excluded: list[Poisoned] = []
        self._max_batch = declaration.max_batch
        self._batch = -1
        self._offsets: dict[int, int] = {}
        self._failure: Exception | None = None
        self._stop = threading.Event()

    def stop(self) -> None:
        """Asks for an end at the next batch boundary; safe from a signal handler."""
        self._stop.set()

    def run(self) -> None:
        """Steps 1 to 5."""
        check_topics(self._kafka, [*self._identity.topics(), topics.Topic(self._identity.input, self._partitions)])
        self._claim()
        while not self._stop.is_set():
            query = self._start()
            error = self._watch(query)
            if error is not None:
                self._recover(error)
        self._group.close()

    # 1. claim

    def _claim(self) -> None:
        generation, app = self._job.generation, self._identity.app
        refuse_if_stale(self._group.read(), generation, app)
        self._writer.fence()
        positions = self._group.read()
        refuse_if_stale(positions, generation, app)
        before = positions.stamp or Stamp(generation)
        self._stamp = Stamp(generation, before.checkpoint, before.batch)
        self._offsets = dict(positions.offsets)
        self._writer.commit([], self._group, self._offsets, self._stamp)

    # 2. and 3. restore, start

    def _start(self) -> StreamingQuery:
        declaration = self._loaded.declaration
        self._failure = None
        self._batch = -1
        resumes = declaration.kind == "aggregate" and self._checkpoint.id == self._stamp.checkpoint
        if not resumes or self._checkpoint.last_planned() < self._stamp.batch:
            self._checkpoint.renew()
        self._tables_version = version(declaration.tables, self._loaded.folder)
        result = self._detect(self._events_stream())
        if isinstance(result, Fold):
            self._host = FoldHost(result, self._settings, declaration.key_column, self._identity.state)
            restored = self._host.restore(self._kafka, self._partitions)
            frame, judge = self._host.prepared(), self._judge_fold
        else:
            restored = self._crossings.restore(self._kafka) if declaration.kind == "aggregate" else 0
            frame, judge = result, self._judge_columns
        logger().info("query starts", offsets=self._offsets, keys=restored, checkpoint=self._checkpoint.id)
        writer = frame.writeStream.queryName(self._identity.app).foreachBatch(self._guarded(judge))
        return (
            writer.outputMode("update" if declaration.kind == "aggregate" else "append")
            .option("checkpointLocation", str(self._checkpoint.folder))
            .trigger(processingTime=f"{int(declaration.trigger.total_seconds() * 1000)} milliseconds")
            .start()
        )

    def _events_stream(self) -> DataFrame:
        declaration, app = self._loaded.declaration, self._identity.app
        topic = self._identity.input
        groups = [self._offsets]
        if declaration.lateness is not None:
            groups = [{p: o} for p, o in sorted(self._offsets.items())]
        per_source = max(1, self._max_batch // len(groups))
        streams = [self._events(source.stream(self._spark, self._kafka, app, topic, g, per_source)) for g in groups]
        return source.watermarked(streams, declaration.lateness) if declaration.lateness is not None else streams[0]

    def _events(self, raw: DataFrame) -> DataFrame:
        kept = source.without(raw, [(p.partition, p.offset) for p in self._excluded])
        return source.events(kept, self._schemas, self._loaded.declaration.key_column)

    def _detect(self, events: DataFrame) -> "DataFrame | Fold[Any]":
        tables = load(self._spark, self._loaded.declaration.tables, self._loaded.folder)
        try:
            return self._loaded.detector.detect(events, self._settings, tables)
        except LozengeError:
            raise
        except Exception as error:
            raise DetectorError(
                f"planning {self._identity.app}: detect() raised {type(error).__name__}: {first_line(error)}",
                hint="run the detector's tests; detect() must build expressions from the event's columns",
            ) from error

    # 4. one batch

    def _guarded(self, judge: "Judge") -> Callable[[DataFrame, int], None]:
        def on_batch(frame: DataFrame, batch: int) -> None:
            try:
                self._batch = batch
                self._run_batch(frame, batch, judge)
            except Exception as error:
                self._failure = error
                raise

        return on_batch

    def _run_batch(self, frame: DataFrame, batch: int, judge: "Judge") -> None:
        started = time.monotonic()
        ends = self._checkpoint.planned(batch)
        if ends is None:
            raise DetectorError(f"reading batch {batch} of {self._checkpoint.folder}: Spark has not written its offsets")
        stamp = Stamp(self._job.generation, self._checkpoint.id, batch)
        if self._stamp.checkpoint == stamp.checkpoint and self._stamp.batch >= batch:
            return  # its transaction committed before the crash; Spark alone has to catch up
        findings, poisoned, state = judge(frame)
        now = datetime.now(UTC)
        records = [self._alerts.record(finding, now) for finding in findings]
        records += [self._dead_letter(p) for p in [*self._due(ends), *poisoned]]
        records += state
        self._writer.commit(records, self._group, ends, stamp)
        self._stamp, self._offsets = stamp, {**self._offsets, **ends}
        self._excluded = [p for p in self._excluded if p.offset >= self._offsets[p.partition]]
        self._measure(findings, started)

    def _judge_columns(self, frame: DataFrame) -> "tuple[list[Finding], list[Poisoned], list[Record]]":
        findings = [from_row(row) for row in frame.toArrow().to_pylist()]
        if self._loaded.declaration.kind != "aggregate":
            return findings, [], []
        new, state = self._crossings.judge(findings)
        return new, [], state

    def _judge_fold(self, frame: DataFrame) -> "tuple[list[Finding], list[Poisoned], list[Record]]":
        assert self._host is not None
        findings, poisoned, state = self._host.judge(frame.toArrow())
        return findings, [Poisoned(*p) for p in poisoned], state

    def _due(self, ends: dict[int, int]) -> list[Poisoned]:
        return [p for p in self._excluded if self._offsets[p.partition] <= p.offset < ends.get(p.partition, 0)]

    def _dead_letter(self, poisoned: Poisoned) -> Record:
        stage = "decode" if isinstance(poisoned.error, DecodeError) else "detect"
        self._metrics.dead_letters(1, stage)
        original = _fetch(self._kafka, self._identity.input, poisoned.partition, poisoned.offset)
        return dead_letter_record(self._identity, original, stage, poisoned.error)

    def _measure(self, findings: Sequence[Finding], started: float) -> None:
        self._metrics.batch(time.monotonic() - started)
        self._metrics.emitted(len(findings))
        now = datetime.now(UTC)
        for finding in findings:
            if finding.arrived is not None:
                self._metrics.latency((now - finding.arrived).total_seconds())

    # 5. watch and recover

    def _watch(self, query: StreamingQuery) -> Exception | None:
        """None when the query ended as it should (stop, new tables); else why it failed."""
        seen, touched = -1, time.monotonic()
        while True:
            try:
                ended = query.awaitTermination(0.2)
            except Exception as error:
                return self._failure or error
            if ended:
                return self._failure or DetectorError(f"running {self._identity.app}: its query ended by itself")
            seen, touched = self._report(query, seen, touched)
            declared = self._loaded.declaration.tables
            if self._stop.is_set() or (declared and version(declared, self._loaded.folder) != self._tables_version):
                self._stop_at_boundary(query)
                return None

    def _report(self, query: StreamingQuery, seen: int, touched: float) -> tuple[int, float]:
        for progress in query.recentProgress:
            if progress.batchId > seen:
                seen, touched = progress.batchId, time.monotonic()
                self._metrics.records(max(0, progress.numInputRows))
                self._metrics.lag(sum(int(s.metrics.get("maxOffsetsBehindLatest", 0)) for s in progress.sources))
        if time.monotonic() - touched > RETOUCH_SECONDS:
            touched = time.monotonic()
            self._writer.commit([], self._group, self._offsets, self._stamp)
        return seen, touched

    def _stop_at_boundary(self, query: StreamingQuery) -> None:
        deadline = time.monotonic() + STOP_SECONDS
        while query.status["isTriggerActive"] and time.monotonic() < deadline:
            time.sleep(0.02)
        query.stop()

    def _recover(self, error: Exception) -> None:
        if isinstance(error, LozengeError):
            raise error
        text = str(error)
        log = logger()
        if "spark.driver.maxResultSize" in text and self._max_batch > 1:
            self._max_batch = max(1, self._max_batch // 2)
            log.warning("batch too large for the driver; halved", max_batch=self._max_batch)
            return
        if (unknown := re.search(UNKNOWN_SCHEMA + r":(\d+)", text)) and self._learn(int(unknown.group(1))):
            log.info("learned a schema; query starts again", schema=int(unknown.group(1)))
            return
        partitions(self._kafka)  # an unreachable broker is never a record's fault
        ends = self._checkpoint.planned(self._batch) if self._batch >= 0 else None
        if ends is None:
            raise DetectorError(
                f"running {self._identity.app}: {first_line(error)}", hint="see the log; the job is restarted"
            ) from error
        ranges = {p: (self._offsets[p], end) for p, end in ends.items()}
        found = find_poison(ranges, self._evaluate)
        if not found:
            raise DetectorError(
                f"running {self._identity.app}: a batch failed, its records alone do not: {first_line(error)}",
                hint="see the log; the job is restarted at its committed offsets",
            ) from error
        self._excluded += [self._blamed(p) for p in found]
        log.warning("records put aside as dead letters", count=len(found), error=first_line(found[0].error))

    def _learn(self, schema_id: int) -> bool:
        known = {s.id for s in self._schemas}
        self._schemas += [s for s in learn(self._kafka, "event") if s.id not in known]
        return any(s.id == schema_id for s in self._schemas)

    def _evaluate(self, ranges: Ranges, *, decode_only: bool = False) -> None:
        raw = source.bounded(self._spark, self._kafka, self._identity.app, self._identity.input, ranges)
        frame = self._events(raw)
        if not decode_only:
            result = self._detect(frame)
            frame = result.events if isinstance(result, Fold) else result
        frame.write.format("noop").mode("overwrite").save()

    def _blamed(self, poisoned: Poisoned) -> Poisoned:
        place = {poisoned.partition: (poisoned.offset, poisoned.offset + 1)}
        kind: type[LozengeError] = DetectError
        try:
            self._evaluate(place, decode_only=True)
        except Exception:  # the bytes themselves cannot be read
            kind = DecodeError
        return Poisoned(poisoned.partition, poisoned.offset, kind(first_line(poisoned.error)))


Judge = Callable[[DataFrame], tuple[list[Finding], list[Poisoned], list[Record]]]


def _fetch(kafka: KafkaSettings, topic: str, partition: int, offset: int) -> Any:
    """The record at one place, as a confluent-kafka message."""
    consumer = Consumer(kafka.client(group_id="lozenge-fetch", enable_auto_commit=False))
    try:
        consumer.assign([TopicPartition(topic, partition, offset)])
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None and message.offset() == offset:
                return message
        raise DetectorError(f"fetching {topic} {partition}:{offset} for its dead letter: the record is not there")
    finally:
        consumer.close()
