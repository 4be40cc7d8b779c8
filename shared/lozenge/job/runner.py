"""Runs one detector until it is told to stop.

The order, in numbers that come back below:
1. claim: refuse if a newer generation committed, fence earlier writers, read the group's offsets, look
   again, and write the claim down;
2. plan the query at the group's offsets, restore the state that the state topic holds, start (an
   aggregate's own checkpoint continues if it is the one that committed last; else it counts its open
   windows again);
3. per batch: judge, then commit alerts, dead letters, state and offsets in one transaction;
4. when a batch fails: learn a new schema, shrink the batch, or find the poison; then plan again in the
   same session. Whatever else happens ends the process, and a restart is always safe.
"""

import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from lozenge import topics
from lozenge.admin import check_topics, partitions
from lozenge.errors import DetectorError, LozengeError
from lozenge.job.batch_limit import BatchLimit
from lozenge.job.checkpoint import Checkpoint
from lozenge.job.hosts import Host
from lozenge.job.identity import Identity
from lozenge.job.judgement import Judgement
from lozenge.job.output import AlertWriter, Poisoned, dead_letter_record, unplaced_record
from lozenge.job.plan import Plan
from lozenge.job.poison import find_poison, first_line, refuse_too_many
from lozenge.job.positions import Group, Stamp, refuse_if_stale
from lozenge.job.rewind import rewound
from lozenge.job.settings import JobSettings, detector_settings
from lozenge.job.source import fetch
from lozenge.job.transaction import Record, TransactionalWriter
from lozenge.kafka import KafkaSettings
from lozenge.loading import Loaded
from lozenge.logs import logger
from lozenge.metrics import Metrics
from lozenge.registry import announce
from lozenge.schemas import newest
from lozenge.spark_avro import UNKNOWN_SCHEMA

STOP_SECONDS = 20.0
RETOUCH_SECONDS = 6 * 3600.0
"""An idle group commits again this often, so that its offsets never expire."""


class Runner:
    """One detector's job. `run` returns after `stop`, or raises what a person or a restart must mend."""

    def __init__(
        self, loaded: Loaded, job: JobSettings, kafka: KafkaSettings, spark: SparkSession, metrics: Metrics
    ) -> None:
        self._declaration = loaded.declaration
        self._job, self._kafka, self._metrics = job, kafka, metrics
        self._identity = identity = Identity.of(loaded, job)
        settings = detector_settings(loaded, job.settings)
        self._partitions = topics.EVENT_PARTITIONS
        self._plan = Plan(loaded, identity, settings, kafka, spark)
        self._alerts = AlertWriter(
            identity,
            self._partitions,
            title=self._declaration.title,
            severity=self._declaration.severity,
            digest=settings.digest,
        )
        self._checkpoint = Checkpoint(job.work / identity.app / job.release / "checkpoint")
        self._group = Group(kafka, identity.app, identity.input, self._partitions)
        self._writer = TransactionalWriter(kafka, identity.app)  # so a second job of any name fences it
        self._limit = BatchLimit(self._declaration.max_batch)
        self._stamp, self.offsets = Stamp(job.generation), dict[int, int]()
        self._read = dict[int, int]()  # how far the query has read; behind the offsets where it counts again
        self._batch = -1
        self._failure: Exception | None = None
        self._stop = threading.Event()

    def stop(self) -> None:
        """Asks for an end at the next batch boundary; safe from a signal handler."""
        self._stop.set()

    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stop.is_set()

    def run(self) -> None:
        """Steps 1 to 4."""
        check_topics(self._kafka, [*self._identity.topics(), topics.Topic(self._identity.input, self._partitions)])
        announce(self._kafka, [newest("alert")])
        self._claim()
        while not self._stop.is_set():
            error = self._watch(self._start())
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
        self.offsets = dict(positions.offsets)
        self._writer.commit([], self._group, self.offsets, self._stamp)

    # 2. plan, restore, start

    def _start(self) -> StreamingQuery:
        aggregate = self._declaration.kind == "aggregate"
        self._failure, self._batch = None, -1
        self._read = self._resumed() if aggregate else self._anew()
        self._tables = self._plan.tables_version()
        host = self._plan.host(self._read, self._limit.value, self._alerts, self._partitions)
        restored = host.restore(self._kafka)
        logger().info("query starts", offsets=self._read, keys=restored, checkpoint=self._checkpoint.id)
        writer = host.frame().writeStream.queryName(self._identity.app).foreachBatch(self._on_batch(host))
        return (
            writer.outputMode("update" if aggregate else "append")
            .option("checkpointLocation", str(self._checkpoint.folder))
            .trigger(processingTime=f"{int(self._declaration.trigger.total_seconds() * 1000)} milliseconds")
            .start()
        )

    def _anew(self) -> dict[int, int]:
        self._checkpoint.renew()
        return dict(self.offsets)

    def _resumed(self) -> dict[int, int]:
        checkpoint, batch = self._checkpoint, self._stamp.batch
        if checkpoint.id == self._stamp.checkpoint and checkpoint.last_planned() >= batch:
            return checkpoint.planned(batch) or dict(self.offsets)
        begin = self._anew()
        if batch < 0:  # nothing was ever counted
            return begin
        return rewound(self._kafka, self._identity.input, begin, self._declaration.memory)

    # 3. one batch

    def _on_batch(self, host: Host) -> Callable[[DataFrame, int], None]:
        def on_batch(frame: DataFrame, batch: int) -> None:
            try:
                self._batch = batch
                self._run_batch(host, frame, batch)
            except Exception as error:
                self._failure = error  # as it is: through the JVM it would come back as text
                raise

        return on_batch

    def _run_batch(self, host: Host, frame: DataFrame, batch: int) -> None:
        started = time.monotonic()
        ends = self._checkpoint.planned(batch)
        if ends is None:
            raise DetectorError(
                f"running batch {batch}: Spark has not written its offsets in {self._checkpoint.folder}"
            )
        stamp = Stamp(self._job.generation, self._checkpoint.id, batch)
        if self._stamp.checkpoint == stamp.checkpoint and self._stamp.batch >= batch:
            # Its transaction committed before the crash. Spark's own state did not: it has to count again.
            frame.write.format("noop").mode("overwrite").save()
            self._read |= ends
            return
        judged = host.judge(frame.toArrow())
        errors = [p.error for p in judged.poisoned] + [u.error for u in judged.unplaced]
        refuse_too_many(errors, sum(ends[p] - self._read[p] for p in ends))
        judged = judged._replace(poisoned=[*self._set_aside(ends), *judged.poisoned])
        now = datetime.now(UTC)
        records = [self._alerts.record(finding, now) for finding in judged.findings]
        records += self._dead_letters(judged.poisoned)
        records += [unplaced_record(self._identity, unplaced) for unplaced in judged.unplaced]
        decided = {p: max(end, self.offsets[p]) for p, end in ends.items()}
        self._writer.commit([*records, *judged.state], self._group, decided, stamp)
        self._stamp, self.offsets, self._read = stamp, self.offsets | decided, self._read | ends
        self._plan.excluded = [p for p in self._plan.excluded if p.offset >= self._read[p.partition]]
        self._limit.succeeded()
        self._measure(judged, started)

    def _set_aside(self, ends: dict[int, int]) -> list[Poisoned]:
        """The excluded records of this batch that have not become dead letters yet."""
        return [p for p in self._plan.excluded if self.offsets[p.partition] <= p.offset < ends.get(p.partition, 0)]

    def _dead_letters(self, poisoned: Sequence[Poisoned]) -> Iterator[Record]:
        if not poisoned:
            return
        originals = fetch(self._kafka, self._identity.input, [(p.partition, p.offset) for p in poisoned])
        for record, original in zip(poisoned, originals, strict=True):
            yield dead_letter_record(self._identity, original, record)

    def _measure(self, judged: Judgement, started: float) -> None:
        self._metrics.batch(time.monotonic() - started)
        self._metrics.emitted(len(judged.findings))
        for stage in [p.stage for p in judged.poisoned] + [u.stage for u in judged.unplaced]:
            self._metrics.dead_letters(1, stage)
        now = datetime.now(UTC)
        for finding in judged.findings:
            if finding.arrived is not None:
                self._metrics.latency((now - finding.arrived).total_seconds())

    # 4. watch and recover

    def _watch(self, query: StreamingQuery) -> Exception | None:
        """None when the query ended as it should (told to stop, new tables, larger batches); else why it failed."""
        seen, touched, looked = "", time.monotonic(), time.monotonic()
        while True:
            try:
                ended = query.awaitTermination(0.2)  # type: ignore[arg-type]  # it takes fractions of a second
            except Exception as error:
                return self._failure or error
            if ended:
                return self._failure or DetectorError(f"running {self._identity.app}: its query ended by itself")
            for progress in query.recentProgress:
                if progress.timestamp > seen:  # an idle trigger reports under the number of the batch to come
                    seen = progress.timestamp
                    touched = time.monotonic() if progress.numInputRows else touched
                    self._metrics.records(max(0, progress.numInputRows))
                    self._metrics.lag(sum(int(s.metrics.get("maxOffsetsBehindLatest", 0)) for s in progress.sources))
            if time.monotonic() - touched > RETOUCH_SECONDS:
                touched = time.monotonic()
                self._writer.commit([], self._group, self.offsets, self._stamp)
            changed = False
            if time.monotonic() - looked > 2:
                looked, changed = time.monotonic(), self._plan.tables_version() != self._tables
            if changed or self._stop.is_set() or self._limit.grow():
                _stop_at_boundary(query)
                return None

    def _recover(self, error: Exception) -> None:
        """Changes the plan so that the next start gets further, or raises."""
        if isinstance(error, LozengeError):
            raise error
        text, log = str(error), logger()
        if "spark.driver.maxResultSize" in text and self._limit.shrink():
            self._checkpoint.forget(self._batch)
            log.warning("batch too large for the driver, halved", max_batch=self._limit.value)
            return
        unknown = re.search(UNKNOWN_SCHEMA + r":(\d+)", text)
        if unknown and self._plan.learn(int(unknown.group(1))):
            log.info("schema learned, query starts again", schema=int(unknown.group(1)))
            return
        partitions(self._kafka)  # an unreachable broker is never a record's fault
        ends = self._checkpoint.planned(self._batch)
        found = find_poison({p: (self._read[p], end) for p, end in (ends or {}).items()}, self._plan.evaluate)
        if not found:
            raise DetectorError(
                f"running {self._identity.app}: a batch failed, though no record fails alone: {first_line(error)}",
                hint="see the log above; the job is restarted at its committed offsets",
            ) from error
        for poisoned in found:
            self._plan.exclude(poisoned)
        log.warning("records put aside as dead letters", count=len(found), error=first_line(found[0].error))


def _stop_at_boundary(query: StreamingQuery) -> None:
    deadline = time.monotonic() + STOP_SECONDS
    while query.status["isTriggerActive"] and time.monotonic() < deadline:
        time.sleep(0.02)
    query.stop()
