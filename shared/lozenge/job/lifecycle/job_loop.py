"""Runs one detector until it is stopped.

The steps, by the numbers of the sections below:
1. Claim partitions (see `claim`). A standby reads the group's offsets instead, and claims at the cut-over. One of
   several instances claims the partitions assigned to it, and again whenever the assignment changes.
2. Plan the query at the offsets, restore the state, start the query. An aggregate resumes from its own checkpoint if
   that was the last one to commit; otherwise it counts its open windows again.
3. Per batch: process it, then commit alerts, dead letters, state and offsets in one transaction. A standby buffers its
   output. Its first transaction begins exactly where the last one of the replaced job ended.
4. When a batch fails, recover: learn a new schema, halve the batch, or find the failing records. When settings or
   reference tables change, stop at a batch boundary. Then plan again in the same session. A live job that fails on too
   many records pauses and retries later. Anything else ends the process, and a restart is always safe.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from lozenge.contracts.topics import Topic
from lozenge.detector.loader import LoadedDetector
from lozenge.durations import in_milliseconds
from lozenge.errors import ConfigError, DetectorError, Flood
from lozenge.job.batch_result import BatchResult, FailedRecord, count, first_reached
from lozenge.job.commit.alert_encoder import AlertEncoder
from lozenge.job.commit.claim import Claims
from lozenge.job.commit.live_committer import LiveCommitter, ProcessedBatch
from lozenge.job.commit.standby_buffer import StandbyBuffer
from lozenge.job.drivers.window_replay import rewound
from lozenge.job.effective_config import EffectiveConfig, JobSpecFile
from lozenge.job.identity import Identity
from lozenge.job.lifecycle.backfill_worker import BackfillWorker
from lozenge.job.lifecycle.circuit_breaker import RETRY_INTERVAL_SECONDS, CircuitBreaker
from lozenge.job.lifecycle.partition_assignment import PartitionAssignment
from lozenge.job.lifecycle.recovery import BatchLimit, Recovery
from lozenge.job.lifecycle.status_reporter import JobStatusReporter
from lozenge.job.operators.operator import Operator
from lozenge.job.query.poison_search import Ranges, stop_at_too_many
from lozenge.job.query.query_builder import QueryBuilder
from lozenge.job.settings import JobSettings
from lozenge.kafka.schema_registry import settle_ids
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import check_topics
from lozenge.kafka.topic_reader import bounds
from lozenge.metrics.app_metrics import JobMetrics
from lozenge.process.logging import logger
from lozenge.process.shutdown import STOP_SECONDS
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.protocol.job_status import JobPhase
from lozenge.spark import internals
from lozenge.spark.checkpoint import Checkpoint
from lozenge.spark.query_progress import TriggerHistory, TriggerProgress

REFRESH_SECONDS = 6 * 3600.0
"""How often an idle group commits the same offsets again, so that they do not expire."""
TABLE_POLL_SECONDS = 2.0
"""How often it looks for new reference tables."""
WARM_UP_OFFSETS = 1_000
"""How many events of each partition a warm-up run processes."""
READINESS_POLL_SECONDS = 0.5
"""How often a standby compares its offsets with those of the live job."""
CAUGHT_UP_OFFSETS = 1_000
"""A warm standby is ready while its lag to the live job is at most this."""
SNAPSHOT_TRIES = 5
"""How often a standby reads offsets and state again, until both are of the same transaction."""


class JobLoop:
    """The job of one detector. `run` returns after `stop`; it raises if a restart or an operator is needed."""

    starts_after_predecessor = False
    """Whether it starts only when its predecessor has ended, instead of processing concurrently as a standby."""
    _output_ahead = False
    """Whether alerts are published before the offsets of their events are committed."""

    def __init__(
        self, loaded: LoadedDetector, job: JobSettings, kafka: KafkaSettings, spark: SparkSession, metrics: JobMetrics
    ) -> None:
        self._loaded, self._declaration = loaded, loaded.declaration
        self._job, self._kafka, self._spark, self._metrics = job, kafka, spark, metrics
        self._identity = identity = Identity.of(loaded, job, kafka.topics)
        self._partitions = kafka.topics.partitions
        self._spec_file = JobSpecFile(job)
        self._spec = self._spec_file.current
        self._config = EffectiveConfig.of(loaded, self._spec)
        self._builder = QueryBuilder(loaded, identity, self._config.settings, kafka, spark)
        self._limit = BatchLimit(self._config.max_batch)
        self._reporter = JobStatusReporter(job.folder)
        self._circuit = CircuitBreaker(self._reporter, metrics)
        folder = (job.folder or job.work / identity.app / job.release) / "checkpoint"
        self._checkpoint = Checkpoint(folder)
        self._claims = Claims(kafka, identity, self._partitions, self._declaration)
        self._committer: LiveCommitter | None = None  # of a standby there is none
        self._buffer: StandbyBuffer | None = None  # of a live job there is none
        self._read: dict[int, int] = {}
        self._assignment = PartitionAssignment(kafka, identity)
        self._warm = False
        self._recovery = Recovery(identity.app, self._builder, self._checkpoint, kafka, spark, self._reporter)
        self._backfill = BackfillWorker(loaded, job, kafka, spark, metrics)
        self._operator: Operator | None = None
        self._consistent = True  # every processed batch is committed or buffered
        self._batch = -1
        self._failure: Exception | None = None
        self._stopping_query, self._at_boundary = threading.Event(), threading.Event()
        self._lock = threading.RLock()  # batches come in Spark's thread, specs in the loop's
        self._stop = threading.Event()

    @property
    def offsets(self) -> dict[int, int]:
        """The committed offsets by partition; of a standby those at which it began."""
        output = self._committer or self._buffer
        return output.offsets if output else {}

    @property
    def circuit_open(self) -> str:
        """Why the job is paused; "" while it is not."""
        return self._reporter.status.circuit_open

    def stop(self) -> None:
        """Requests a stop at the next batch boundary; safe in a signal handler."""
        self._stop.set()

    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stop.is_set()

    def run(self) -> None:
        """Steps 1 to 4."""
        check_topics(self._kafka, [*self._identity.own_topics(), Topic(self._identity.input, self._partitions)])
        settle_ids(self._kafka, ["alert"])
        self._reporter.update(
            fenced=not self._output_ahead,
            session_started_at=time.time(),
            generation=self._spec.generation,
            revision=self._spec.revision,
        )
        try:
            while not self._stop.is_set():
                if not self._claim():
                    self._idle()
                    continue
                error = self._watch(self._start())
                if error is not None and not self._stop.is_set():
                    self._recover_or_pause(error)
        finally:
            self._backfill.stop()
            self._assignment.leave()
        if self._committer is not None:
            self._committer.close()
        self._claims.group.close()
        self._reporter.update(finished_at=time.time())

    # 1. claim, share partitions, cut over

    def _claim(self) -> bool:
        """Claims the partitions to process, if they have changed; False if there are none now."""
        spec, assignment = self._spec, self._assignment
        if spec.standby and (spec.shared or self.starts_after_predecessor):
            self._warm_up()
            return False
        if not spec.shared:
            assignment.leave()
            if not spec.standby and not assignment.exclusive:
                self._claim_partitions(self._config.settings.digest)
                self._reporter.update(generation=spec.generation)
                assignment.exclusive = True
                self._start_backfill()
            return True
        self._backfill.stop()  # several instances would backfill the same gaps; `lozenge backfill` can
        if (assigned := assignment.assigned()) and assigned != assignment.claimed:
            self._claim_partitions(self._config.settings.digest, assigned)
            self._operator = None  # its state is of other partitions
        assignment.claimed = assigned
        return bool(assigned)

    def _claim_partitions(self, digest: str, among: Collection[int] | None = None) -> None:
        """From now on nobody else commits for these partitions, and their committed offsets are known."""
        if self._committer is not None:
            self._committer.close()
        was_standby = self._buffer is not None
        claim = self._claims.claim(self._spec.generation, digest, among, was_standby=was_standby)
        self._committer = LiveCommitter(self._kafka, self._identity, self._declaration, self._claims, claim)

    def _start_backfill(self) -> None:
        """The live job backfills what was skipped at any start."""
        if self._declaration.backlog == "newest-first" and self._identity.live:
            self._backfill.start()

    def _warm_up(self) -> None:
        """Lets Spark plan and compile, so that claimed partitions need not wait for it."""
        if not self._warm:
            self._reporter.update(phase=JobPhase.WARMING_UP)
            ends = bounds(self._kafka, self._identity.input, self._partitions)
            with suppress(Exception):  # a failure on these events is handled where they are processed
                self._run_warm_up({p: (max(low, end - WARM_UP_OFFSETS), end) for p, (low, end) in ends.items()})
        self._warm = True

    def _run_warm_up(self, ranges: Ranges) -> None:
        """Processes the events of `ranges` and discards the output."""
        self._builder.evaluate(ranges)

    def _idle(self) -> None:
        """Waits for a new spec: as a standby that is ready, or as an instance without partitions."""
        phase = JobPhase.READY if self._spec.standby else JobPhase.LIVE
        self._reporter.update(phase=phase, generation=self._spec.generation, lag=0)
        self._reporter.progressed()
        if self._apply_spec():
            self._reporter.update(revision=self._spec.revision, digest=self._config.settings.digest, rejected="")
        self._stop.wait(0.05)

    def _cut_over(self) -> None:
        """Claims at a batch boundary. From then on the replaced job commits nothing more."""
        self._claim_partitions(self._reporter.status.digest)  # the settings it processed with
        self._assignment.exclusive = True
        self._start_backfill()
        assert self._operator is not None
        if self._consistent:  # else the query is about to end, and the next one starts at the claimed offsets
            self._publish_buffered(self._operator)

    def _publish_buffered(self, operator: Operator) -> None:
        """Commits the buffered output, if the query has read what the replaced job has committed."""
        assert self._committer is not None
        assert self._buffer is not None
        since = dict(self.offsets)
        if any(self._read[p] < offset for p, offset in since.items()):
            return
        buffered, self._buffer = self._buffer.prune(since), None
        result = buffered._replace(alerts=operator.cut_over(self._kafka, buffered.alerts))
        self._committer.commit(self._processed(operator, result, self._read), self._encoder)
        self._reporter.went_live(self._spec.generation, since, self.offsets)
        count(self._metrics, result)
        logger().info("cut over, live", generation=self._spec.generation, since=since, published=len(result.alerts))

    def _start_live(self) -> None:
        """The query ended between the claim and the first transaction: start at the claimed offsets."""
        if not self._declaration.stateless and self._job.state != "keep":
            raise DetectorError(
                f"cutting over to {self._identity.app}: the query stopped before the standby output was published",
                hint="see the log above; nothing was published, and the previous release resumes at the same offsets",
            )
        self._buffer = None
        self._reporter.went_live(self._spec.generation, self.offsets, self.offsets)
        logger().info("cut over, live", generation=self._spec.generation, since=self.offsets)

    # 2. plan, restore, start

    def _start(self) -> StreamingQuery:
        config = self._config
        previous = self._operator if self._consistent and not self._spec.standby else None
        self._failure, self._operator, self._batch, self._consistent = None, None, -1, True
        if not self._spec.standby and self._buffer is not None:
            self._start_live()
            previous = None
        if self._committer is not None:
            self._committer.record_settings(config.settings.digest)
        self._tables = self._builder.tables_version()
        self._encoder = AlertEncoder(self._identity, self._declaration, config.settings)
        operator, keys = self._operator_with_state(previous)
        logger().info("query starts", offsets=self._read, keys=keys, checkpoint=self._checkpoint.id)
        writer = self._writer(operator).queryName(self._identity.app)
        with self._lock:  # no batch before `_operator` is set
            query = writer.option("checkpointLocation", str(self._checkpoint.folder)).start()
            self._operator = operator
            phase = JobPhase.STANDBY if self._spec.standby else JobPhase.LIVE
            self._reporter.query_started(phase, self._spec.revision, config.settings.digest, dict(self.offsets))
        return query

    def _writer(self, operator: Operator) -> DataStreamWriter:
        """What happens with the operator's rows."""
        writer = operator.frame().writeStream.foreachBatch(self._on_batch(operator))
        writer = writer.outputMode("update" if self._declaration.kind == "aggregate" else "append")
        return writer.trigger(processingTime=self._interval)

    def _operator_with_state(self, previous: Operator | None) -> tuple[Operator, int]:
        """The operator of the next query, with the state of `previous` or the stored state; and its number of keys.

        While this job is a standby, the live job writes offsets and state. They are read again until both are of the
        same transaction.
        """
        for _ in range(SNAPSHOT_TRIES):
            if self._spec.standby:
                self._buffer = StandbyBuffer(self._claims.position())
            aggregate = self._declaration.kind == "aggregate"
            self._read = self._resume_checkpoint() if aggregate else self._renew_checkpoint()
            operator = self._builder.operator(self._read, self._offsets_per_batch, self._partitions)
            keys = operator.adopt_state(previous) if previous is not None else self._restore(operator)
            if (
                not self._spec.standby
                or self._declaration.kind != "stateful"
                or self._claims.group.read().offsets == self.offsets
            ):
                break
        return operator, keys

    def _restore(self, operator: Operator) -> int:
        """Reads the stored state, unless the state policy discards it; returns the number of keys."""
        if self._spec.standby and self._declaration.kind == "stateful" and self._job.state != "keep":
            return 0
        return operator.restore(self._kafka)

    def _renew_checkpoint(self) -> dict[int, int]:
        """Starts with an empty checkpoint; returns the offsets to read from."""
        self._checkpoint.renew()
        if self._spec.standby and self._declaration.kind == "stateful" and self._job.state == "rebuild":
            return {p: low for p, (low, _) in bounds(self._kafka, self._identity.input, self._partitions).items()}
        return dict(self.offsets)

    def _resume_checkpoint(self) -> dict[int, int]:
        """Resumes from the checkpoint if it was the last to commit, else counts open windows again; the offsets."""
        checkpoint, metadata = self._checkpoint, self._committed_metadata
        if checkpoint.id == metadata.checkpoint and checkpoint.last_planned() >= metadata.batch:
            checkpoint.back_to(metadata.batch)  # in Real-Time Mode Spark ends a batch before the job commits it
            return checkpoint.planned(metadata.batch) or dict(self.offsets)
        begin = self._renew_checkpoint()
        if metadata.batch < 0 or self._discard_state:  # nothing was counted, or counts are to be discarded
            return begin
        return rewound(self._kafka, self._identity.input, begin, self._declaration.memory)

    @property
    def _discard_state(self) -> bool:
        """Whether an aggregate starts without the counts of open windows."""
        return self._spec.standby and self._job.state == "fresh"

    @property
    def _interval(self) -> str:
        """The trigger as Spark takes it."""
        return in_milliseconds(self._config.trigger.total_seconds())

    @property
    def _offsets_per_batch(self) -> int | None:
        """The most offsets of a batch; None where the source takes no limit."""
        return self._limit.value

    # 3. one batch

    def _on_batch(self, operator: Operator) -> Callable[[DataFrame, int], None]:
        def on_batch(frame: DataFrame, batch: int) -> None:
            try:
                with self._lock:
                    # a busy query starts its next batch at once, so it is never seen at a boundary: that batch is left
                    # to the next query. An aggregate's is not, because its checkpoint would count it as done
                    if self._stopping_query.is_set() and self._declaration.kind != "aggregate":
                        self._at_boundary.set()
                        return
                    self._batch = batch
                    self._run_batch(operator, frame)
            except Exception as error:
                self._failure = error  # the error itself: through the JVM it would come back as text
                raise

        return on_batch

    def _run_batch(self, operator: Operator, frame: DataFrame) -> None:
        started, last = time.monotonic(), self._committed_metadata
        ends = self._checkpoint.planned(self._batch)
        if ends is None:
            folder = self._checkpoint.folder
            raise DetectorError(
                f"running batch {self._batch}: Spark has not written its offsets in {folder}",
                hint="check whether that disk is full or read-only; the job restarts at its committed offsets",
            )
        if last.checkpoint == self._checkpoint.id and last.batch >= self._batch:
            # its transaction was committed before a crash. Spark's own state was not, so Spark has to count it again
            frame.write.format("noop").mode("overwrite").save()
            self._read |= ends
            return
        self._consistent = False
        offsets = sum(ends[p] - self._read[p] for p in ends)
        if self._buffer is None:  # what a standby processes has no effect yet
            self._metrics.begun(offsets)
        result = operator.process(frame.toArrow())
        stop_at_too_many(result.failures, offsets)
        result = result._replace(failed_records=[*self._excluded(ends), *result.failed_records])
        self._read |= ends
        if self._buffer is not None:
            self._buffer.add(result)
            if not self._spec.standby:
                self._publish_buffered(operator)
        else:
            assert self._committer is not None
            events = self._committer.commit(self._processed(operator, result, ends), self._encoder)
            self._limit.succeeded()
            self._metrics.committed(events)
            self._report_commit(result, events, started)
        if self._buffer is None:  # a standby may start again at its first offsets
            self._builder.excluded = [r for r in self._builder.excluded if r.offset >= self._read[r.partition]]
        self._consistent = True
        self._reporter.first_batch_done()

    def _excluded(self, ends: Mapping[int, int]) -> list[FailedRecord]:
        """The excluded records that a batch up to `ends` is the first to reach."""
        begins = {p: max(self._read[p], self.offsets[p]) for p in ends}
        return first_reached(self._builder.excluded, begins, ends)

    def _processed(self, operator: Operator, result: BatchResult, ends: dict[int, int]) -> ProcessedBatch:
        metadata = CommitMetadata(self._spec.generation, self._checkpoint.id, self._batch, self._output_ahead)
        return ProcessedBatch(result, operator.state_changes(), ends, metadata)

    @property
    def _committed_metadata(self) -> CommitMetadata:
        output = self._committer or self._buffer
        return output.metadata if output else CommitMetadata()

    def _report_commit(self, result: BatchResult, events: int, started: float) -> None:
        self._reporter.committed(self._batch, self.offsets, events, len(result.failures))
        self._circuit.close()
        self._metrics.batch(time.monotonic() - started)
        count(self._metrics, result)

    # 4. watch, apply specs, recover

    def _watch(self, query: StreamingQuery) -> Exception | None:
        """None if the query was stopped, for good or to be planned again; else why it failed."""
        history, table_poll, readiness_poll = TriggerHistory(query), time.monotonic(), time.monotonic()
        while True:
            try:
                ended = self._wait(query)
            except Exception as error:
                with suppress(Exception):  # most often it has ended already, or with its JVM
                    query.stop()
                return self._failure or error
            if ended:
                return self._failure or DetectorError(f"running {self._identity.app}: its query ended by itself")
            try:
                self._report_progress(history)
            except Exception:
                query.stop()
                raise
            now = time.monotonic()
            if self._spec.standby and now - readiness_poll > READINESS_POLL_SECONDS:
                readiness_poll = now
                self._check_readiness(history)
            else:
                self._refresh_offsets()
            replan = self._apply_spec() or self._limit.grow()
            if now - table_poll > TABLE_POLL_SECONDS:
                table_poll = now
                replan = replan or self._builder.tables_version() != self._tables
            if replan or self._assignment.changed or self._stop.is_set():
                # on a stop the batch is never cut short: who sent the signal limits how long that may take
                self._stop_query(query, within=float("inf") if self._stop.is_set() else STOP_SECONDS)
                self._report_progress(history)
                return None

    def _wait(self, query: StreamingQuery) -> bool:
        """Waits a moment; whether the query has ended. Raises the error with which it failed."""
        return bool(query.awaitTermination(0.05 if self._spec.standby else 0.2))  # type: ignore[arg-type]

    def _stop_query(self, query: StreamingQuery, *, within: float) -> None:
        """Stops the query at a batch boundary, or after `within` seconds inside a batch, which may then be repeated."""
        self._at_boundary.clear()
        self._stopping_query.set()
        deadline = time.monotonic() + within
        while internals.in_trigger(query) and not self._at_boundary.is_set() and time.monotonic() < deadline:
            time.sleep(0.02)
        query.stop()
        self._stopping_query.clear()

    def _failed_at(self) -> Mapping[int, int]:
        """The end offsets of the batch that failed, by partition."""
        return self._checkpoint.planned(self._batch) or {}

    def _recover_or_pause(self, error: Exception) -> None:
        ranges = {p: (self._read[p], end) for p, end in self._failed_at().items()}
        try:
            self._recovery.after(error, self._batch, ranges, self._limit)
        except Flood as flood:
            if self._spec.standby:  # the live job keeps running
                raise
            self._pause(flood)

    def _pause(self, flood: Flood) -> None:
        """Waits until it is time to retry, or until there is a new spec or a stop."""
        self._circuit.open(flood)
        retry_at = time.monotonic() + RETRY_INTERVAL_SECONDS
        while not (self._assignment.changed or time.monotonic() > retry_at or self._stop.wait(0.2)):
            if self._apply_spec():
                self._circuit.close()  # the failures were those of the previous spec
                return
            self._reporter.progressed()
            self._refresh_offsets()

    def _refresh_offsets(self) -> None:
        if (
            self._committer is not None
            and self._buffer is None
            and time.time() - self._reporter.status.last_commit_at > REFRESH_SECONDS
        ):
            with self._lock:
                self._committer.refresh()
            self._reporter.update(last_commit_at=time.time())

    def _report_progress(self, history: TriggerHistory) -> None:
        triggers = list(history.new())
        for trigger in triggers:
            self._trigger_ended(trigger)
            if self._buffer is None:
                self._metrics.records(trigger.events)
                self._metrics.lag(trigger.lag)
                self._reporter.update(lag=trigger.lag)
        if triggers or history.waiting():
            self._reporter.progressed()

    def _trigger_ended(self, trigger: TriggerProgress) -> None:
        """Nothing: the batch of a trigger is committed when the trigger ends."""

    def _check_readiness(self, history: TriggerHistory) -> None:
        """Drops buffered output that the live job has committed; reports ready once warm and caught up."""
        assert self._buffer is not None
        with self._lock:
            committed = self._claims.group.glance().offsets
            self._buffer.prune(committed)
            lag = sum(max(0, offset - self._read[p]) for p, offset in committed.items())
        if history.warm and lag <= CAUGHT_UP_OFFSETS:
            self._reporter.update(phase=JobPhase.READY)

    def _apply_spec(self) -> bool:
        """Applies a newer spec; whether the query has to be planned again for it."""
        try:
            spec = self._spec_file.newer()
            config = EffectiveConfig.of(self._loaded, spec) if spec else self._config
        except ConfigError as error:
            logger().error(error.message, hint="the job keeps running as before")
            self._reporter.update(rejected=str(error), revision=self._spec_file.current.revision)
            return False
        if spec is None:
            return False
        with self._lock:  # each batch runs under one spec
            to_live = self._spec.standby and not spec.standby
            cuts_over = to_live and not spec.shared and not self.starts_after_predecessor
            changed, shared = config != self._config, spec.shared != self._spec.shared
            self._config, self._spec = config, spec
            if cuts_over:
                self._cut_over()
        if changed:
            self._builder.settings, self._limit = config.settings, BatchLimit(config.max_batch)
        else:
            self._reporter.update(rejected="", revision=spec.revision)
        return changed or shared
