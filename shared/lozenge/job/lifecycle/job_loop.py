"""Runs one detector until it is told to stop.

The order, in numbers that come back below:
1. claim (see `ledger`), or stand by: read the group's offsets and claim once told to take over; one of several
   instances claims the partitions that it is given, and again whenever these change;
2. plan the query at the group's offsets, restore the state that the state topic holds, start (an
   aggregate's own checkpoint continues if it is the one that committed last; else it counts its open
   windows again);
3. per batch: judge, then commit alerts, dead letters, state and offsets in one transaction; a job that
   stands by holds all of it back, and its first transaction begins exactly where its predecessor's last ended;
4. when a batch fails: learn a new schema, shrink the batch, or find the poison; when settings or tables
   change: end between two batches; then plan again in the same session. A live job that raises on too much
   is parked and tries again later. Whatever else happens ends the process, and a restart is always safe.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from lozenge.contracts import topics
from lozenge.contracts.schemas import newest
from lozenge.detector.loader import LoadedDetector
from lozenge.durations import in_milliseconds
from lozenge.errors import ConfigError, DetectorError, Flood
from lozenge.job.batch_result import BatchResult, count
from lozenge.job.commit.alert_encoder import AlertEncoder
from lozenge.job.commit.committer import Committer
from lozenge.job.drivers.window_replay import rewound
from lozenge.job.effective_config import EffectiveConfig, JobSpecFile
from lozenge.job.identity import Identity
from lozenge.job.lifecycle.backfill_worker import BackfillWorker
from lozenge.job.lifecycle.circuit_breaker import RETRY_INTERVAL_SECONDS, CircuitBreaker
from lozenge.job.lifecycle.partition_assignment import PartitionAssignment
from lozenge.job.lifecycle.recovery import BatchLimit, Recovery
from lozenge.job.lifecycle.status_reporter import JobStatusReporter
from lozenge.job.operators.operator import Operator
from lozenge.job.query.poison_search import Ranges, refuse_too_many
from lozenge.job.query.query_builder import Plan
from lozenge.job.settings import JobSettings
from lozenge.kafka.positions import CommitMetadata
from lozenge.kafka.schema_topic import announce
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import check_topics
from lozenge.kafka.topic_reader import bounds
from lozenge.metrics.app_metrics import Metrics
from lozenge.process.logging import logger
from lozenge.process.shutdown import STOP_SECONDS
from lozenge.protocol.job_status import Phase
from lozenge.spark.checkpoint import Checkpoint
from lozenge.spark.triggers import TriggerHistory, TriggerProgress

RETOUCH_SECONDS = 6 * 3600.0
"""An idle group commits again this often, so that its offsets never expire."""
LOOK_SECONDS = 2.0
"""How often it looks for new tables."""
WARM_UP_OFFSETS = 1_000
"""Of each partition: on so many events an instance gets warm before it asks for its share."""
COMPARE_SECONDS = 0.5
"""How often a job that stands by looks how far the live one has come."""
CAUGHT_UP_OFFSETS = 1_000
"""It is ready while it is warm and no further than this behind the live one."""
SNAPSHOT_TRIES = 5


class JobLoop:
    """One detector's job. `run` returns after `stop`, or raises what a person or a restart must mend."""

    begins_behind = False
    """Whether it may begin only once its predecessor has ended, rather than stand by and judge beside it."""
    _checkpoint_kind = ""

    def __init__(
        self, loaded: LoadedDetector, job: JobSettings, kafka: KafkaSettings, spark: SparkSession, metrics: Metrics
    ) -> None:
        self._loaded, self._declaration = loaded, loaded.declaration
        self._job, self._kafka, self._spark, self._metrics = job, kafka, spark, metrics
        self._identity = identity = Identity.of(loaded, job)
        self._partitions = topics.EVENT_PARTITIONS
        self._orders = JobSpecFile(job)
        self._order = self._orders.current
        self._terms = EffectiveConfig.of(loaded, self._order)
        self._plan = Plan(loaded, identity, self._terms.settings, kafka, spark)
        self._limit = BatchLimit(self._terms.max_batch)
        self._reporter = JobStatusReporter(job.folder)
        self._circuit = CircuitBreaker(self._reporter, metrics)
        folder = (job.folder or job.work / identity.app / job.release) / "checkpoint"
        self._checkpoint = Checkpoint(folder, self._checkpoint_kind)
        self._ledger = Committer(kafka, identity, self._partitions, self._declaration)
        self._share = PartitionAssignment(kafka, identity)
        self._warm = False
        self._recovery = Recovery(identity.app, self._plan, self._checkpoint, kafka, spark, self._reporter)
        self._behind = BackfillWorker(loaded, job, kafka, spark, metrics)
        self._host: Operator | None = None
        self._settled = True  # nothing has been judged that is neither committed nor held
        self._batch = -1
        self._failure: Exception | None = None
        self._ending, self._boundary = threading.Event(), threading.Event()  # a stop is asked for; a batch has ended
        self._lock = threading.RLock()  # batches come in Spark's thread, orders in ours
        self._stop = threading.Event()

    @property
    def offsets(self) -> dict[int, int]:
        """What is decided: the next offset by partition."""
        return self._ledger.offsets

    @property
    def circuit_open(self) -> str:
        """Why it judges nothing at present; "" if it does."""
        return self._reporter.status.circuit_open

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
        self._reporter.update(
            fenced=not self._declaration.realtime,
            session_started_at=time.time(),
            generation=self._order.generation,
            revision=self._order.revision,
        )
        try:
            while not self._stop.is_set():
                if not self._hold():
                    self._idle()
                    continue
                error = self._watch(self._start())
                if error is not None and not self._stop.is_set():
                    self._recover_or_pause(error)
        finally:
            self._behind.stop()
            self._share.leave()
        self._ledger.close()
        self._reporter.update(finished_at=time.time())

    # 1. claim, share, stand by and take over

    def _hold(self) -> bool:
        """Claims what it is to judge, if that has changed; False if there is nothing to judge now."""
        order, share = self._order, self._share
        if order.standby and (order.shared or self.begins_behind):
            self._warm_up()
            return False
        if not order.shared:
            share.leave()
            if not order.standby and not share.exclusive:
                self._ledger.claim(order.generation, self._terms.settings.digest)
                self._reporter.update(generation=order.generation)
                share.exclusive = True
                self._go_back()
            return True
        self._behind.stop()  # of several instances nobody does; `lozenge backfill` can
        if (given := share.assigned()) and given != share.claimed:
            self._ledger.claim(order.generation, self._terms.settings.digest, given)
            self._host = None  # its memory is of other partitions
        share.claimed = given
        return bool(given)

    def _go_back(self) -> None:
        """What was left behind at some start is the live job's to judge."""
        if self._declaration.backlog == "newest-first" and self._identity.live:
            self._behind.start()

    def _warm_up(self) -> None:
        """Lets Spark plan and compile, so that the partitions that it takes over do not wait for that."""
        if not self._warm:
            ends = bounds(self._kafka, self._identity.input, self._partitions)
            with suppress(Exception):  # what fails on these is looked into where they are judged
                self._rehearse({p: (max(low, end - WARM_UP_OFFSETS), end) for p, (low, end) in ends.items()})
        self._warm = True

    def _rehearse(self, ranges: Ranges) -> None:
        """Judges them and tells nothing."""
        self._plan.evaluate(ranges)

    def _idle(self) -> None:
        """Looks for orders: one of several instances is ready to take over partitions, or has none."""
        phase = Phase.READY if self._order.standby else Phase.LIVE
        self._reporter.update(phase=phase, generation=self._order.generation, lag=0)
        self._reporter.progressed()
        if self._obey():
            self._reporter.update(revision=self._order.revision, digest=self._terms.settings.digest, rejected="")
        self._stop.wait(0.05)

    def _take_over(self) -> None:
        """Claims between two batches. From then on its predecessor decides nothing more."""
        self._ledger.claim(self._order.generation, self._reporter.status.digest)  # by which it has judged so far
        self._share.exclusive = True
        self._go_back()
        assert self._host is not None
        if self._settled:  # else its query is about to end, and the next one begins where the predecessor ended
            self._settle(self._host)

    def _settle(self, host: Operator) -> None:
        since = dict(self.offsets)
        told = self._ledger.settle(host, self._alerts, self._stamp())
        if told is not None:
            self._reporter.went_live(self._order.generation, since, self.offsets)
            count(self._metrics, told)
            logger().info("took over", generation=self._order.generation, since=since, told=len(told.alerts))

    def _begin_live(self) -> None:
        """Its query ended between the claim and the first transaction: it begins where its predecessor ended."""
        if self._declaration.kind != "rule" and self._job.state != "keep":
            raise DetectorError(
                f"taking over {self._identity.app}: its query ended before it had told what it made while it stood by",
                hint="see the log above; nothing was told, and the release before goes on at the same offsets",
            )
        self._ledger.held = None
        self._reporter.went_live(self._order.generation, self.offsets, self.offsets)
        logger().info("took over", generation=self._order.generation, since=self.offsets)

    # 2. plan, restore, start

    def _start(self) -> StreamingQuery:
        ledger, terms = self._ledger, self._terms
        inherited = self._host if self._settled and not self._order.standby else None
        self._failure, self._host, self._batch, self._settled = None, None, -1, True
        if not self._order.standby and ledger.held is not None:
            self._begin_live()
            inherited = None
        if not self._order.standby:
            ledger.processed_by(terms.settings.digest)
        self._tables = self._plan.tables_version()
        self._alerts = AlertEncoder(self._identity, self._declaration, terms.settings)
        host, keys = self._remembering(inherited)
        logger().info("query starts", offsets=ledger.read, keys=keys, checkpoint=self._checkpoint.id)
        writer = self._writer(host).queryName(self._identity.app)
        with self._lock:  # no batch before it is known
            query = writer.option("checkpointLocation", str(self._checkpoint.folder)).start()
            self._host = host
            phase = Phase.STANDBY if self._order.standby else Phase.LIVE
            self._reporter.query_started(phase, self._order.revision, terms.settings.digest, dict(self.offsets))
        return query

    def _writer(self, host: Operator) -> DataStreamWriter:
        """What becomes of the host's rows."""
        writer = host.frame().writeStream.foreachBatch(self._on_batch(host))
        writer = writer.outputMode("update" if self._declaration.kind == "aggregate" else "append")
        return writer.trigger(processingTime=self._interval)

    def _remembering(self, before: Operator | None) -> tuple[Operator, int]:
        """The host of the next query, with the memory of `before` or what is stored; and its number of keys.

        Where it stands by, the live job writes offsets and state meanwhile: they are read again until they belong
        together. After some tries it takes what it has: a fold ignores the latest ids of each key.
        """
        for _ in range(SNAPSHOT_TRIES):
            if self._order.standby:
                self._ledger.stand_by()
            self._ledger.read = self._resumed() if self._declaration.kind == "aggregate" else self._anew()
            host = self._plan.operator(self._ledger.read, self._max_batch, self._partitions)
            keys = host.adopt_state(before) if before is not None else self._restore(host)
            if not self._order.standby or self._declaration.kind != "stateful" or not self._ledger.moved():
                break
        return host, keys

    def _restore(self, host: Operator) -> int:
        """Reads the stored state back, unless it is to begin without; returns the number of keys."""
        if self._order.standby and self._declaration.kind == "stateful" and self._job.state != "keep":
            return 0
        return host.restore(self._kafka)

    def _anew(self) -> dict[int, int]:
        self._checkpoint.renew()
        if self._order.standby and self._declaration.kind == "stateful" and self._job.state == "rebuild":
            return {p: low for p, (low, _) in bounds(self._kafka, self._identity.input, self._partitions).items()}
        return dict(self.offsets)

    def _resumed(self) -> dict[int, int]:
        checkpoint, stamp = self._checkpoint, self._ledger.stamp
        if checkpoint.id == stamp.checkpoint and checkpoint.last_planned() >= stamp.batch:
            checkpoint.back_to(stamp.batch)  # in Real-Time Mode Spark ends a batch before the job does
            return checkpoint.planned(stamp.batch) or dict(self.offsets)
        begin = self._anew()
        if stamp.batch < 0 or self._afresh:  # nothing was counted, or shall be
            return begin
        return rewound(self._kafka, self._identity.input, begin, self._declaration.memory)

    @property
    def _afresh(self) -> bool:
        """Whether an aggregate is to begin without what was counted."""
        return self._order.standby and self._job.state == "fresh"

    @property
    def _interval(self) -> str:
        """The trigger as Spark takes it."""
        return in_milliseconds(self._terms.trigger.total_seconds())

    @property
    def _max_batch(self) -> int | None:
        """The most offsets of a batch; None where the source takes no limit."""
        return self._limit.value

    # 3. one batch

    def _on_batch(self, host: Operator) -> Callable[[DataFrame, int], None]:
        def on_batch(frame: DataFrame, batch: int) -> None:
            try:
                with self._lock:
                    # a busy query begins its next batch at once, and is never seen between two. That batch is left to
                    # the next query; an aggregate's counts are in its checkpoint, which would take it for done
                    if self._ending.is_set() and self._declaration.kind != "aggregate":
                        self._boundary.set()
                        return
                    self._batch = batch
                    self._run_batch(host, frame)
            except Exception as error:
                self._failure = error  # as it is: through the JVM it would come back as text
                raise

        return on_batch

    def _run_batch(self, host: Operator, frame: DataFrame) -> None:
        started, ledger, stamp = time.monotonic(), self._ledger, self._stamp()
        ends = self._checkpoint.planned(self._batch)
        if ends is None:
            folder = self._checkpoint.folder
            raise DetectorError(
                f"running batch {self._batch}: Spark has not written its offsets in {folder}",
                hint="see whether that disk is full or read-only; the job is restarted at its committed offsets",
            )
        if ledger.stamp.checkpoint == stamp.checkpoint and ledger.stamp.batch >= stamp.batch:
            # Its transaction committed before the crash. Spark's own state did not: it has to count again.
            frame.write.format("noop").mode("overwrite").save()
            ledger.read |= ends
            return
        self._settled = False
        offsets = sum(ends[p] - ledger.read[p] for p in ends)
        if ledger.held is None:  # what one that stands by judges has no effect yet
            self._metrics.begun(offsets)
        judged = host.process(frame.toArrow())
        refuse_too_many(judged.failures, offsets)
        judged = judged._replace(failed_records=[*ledger.undecided(self._plan.excluded, ends), *judged.failed_records])
        ledger.read |= ends
        if ledger.held is not None:
            ledger.held.add(judged)
            if not self._order.standby:
                self._settle(host)
        else:
            events = ledger.commit(host, judged, self._alerts, ends, stamp)
            self._limit.succeeded()
            self._metrics.committed(events)
            self._measure(judged, events, started)
        if ledger.held is None:  # one that stands by may begin again where it began
            self._plan.excluded = [p for p in self._plan.excluded if p.offset >= ledger.read[p.partition]]
        self._settled = True
        self._reporter.first_batch_done()

    def _stamp(self) -> CommitMetadata:
        return CommitMetadata(self._order.generation, self._checkpoint.id, self._batch)

    def _measure(self, judged: BatchResult, events: int, started: float) -> None:
        self._reporter.committed(self._batch, self.offsets, events, len(judged.failures))
        self._circuit.close()
        self._metrics.batch(time.monotonic() - started)
        count(self._metrics, judged)

    # 4. watch, obey, recover

    def _watch(self, query: StreamingQuery) -> Exception | None:
        """None when the query ended as it should (told to stop, or to be planned anew); else why it failed."""
        turns, looked, compared = TriggerHistory(query), time.monotonic(), time.monotonic()
        while True:
            try:
                ended = self._wait(query)
            except Exception as error:
                with suppress(Exception):  # most often it has failed by itself, or with its JVM
                    query.stop()
                return self._failure or error
            if ended:
                return self._failure or DetectorError(f"running {self._identity.app}: its query ended by itself")
            try:
                self._follow(turns)
            except Exception:
                query.stop()
                raise
            now = time.monotonic()
            if self._order.standby and now - compared > COMPARE_SECONDS:
                compared = now
                self._compare(turns)
            else:
                self._retouch()
            anew = self._obey() or self._limit.grow()
            if now - looked > LOOK_SECONDS:
                looked = now
                anew = anew or self._plan.tables_version() != self._tables
            if anew or self._share.changed or self._stop.is_set():
                # one that is to end never cuts its batch short: whoever told it so bounds how long that may take
                self._stop_at_boundary(query, within=float("inf") if self._stop.is_set() else STOP_SECONDS)
                self._follow(turns)
                return None

    def _wait(self, query: StreamingQuery) -> bool:
        """A moment; whether the query has ended. Raises what it has failed with."""
        return bool(query.awaitTermination(0.05 if self._order.standby else 0.2))  # type: ignore[arg-type]

    def _stop_at_boundary(self, query: StreamingQuery, *, within: float) -> None:
        """Ends the query between two batches, or after `within` seconds within one: its transaction decides then."""
        self._boundary.clear()
        self._ending.set()
        deadline = time.monotonic() + within
        while query.status["isTriggerActive"] and not self._boundary.is_set() and time.monotonic() < deadline:
            time.sleep(0.02)
        query.stop()
        self._ending.clear()

    def _failed_at(self) -> Mapping[int, int]:
        """The ends of the batch that failed, by partition."""
        return self._checkpoint.planned(self._batch) or {}

    def _recover_or_pause(self, error: Exception) -> None:
        ranges = {p: (self._ledger.read[p], end) for p, end in self._failed_at().items()}
        try:
            self._recovery.after(error, self._batch, ranges, self._limit)
        except Flood as flood:
            if self._order.standby:  # the live job goes on
                raise
            self._park(flood)

    def _park(self, flood: Flood) -> None:
        """Waits until it is time to try again, or until it is ordered otherwise or to stop."""
        self._circuit.open(flood)
        again = time.monotonic() + RETRY_INTERVAL_SECONDS
        while not (self._share.changed or time.monotonic() > again or self._stop.wait(0.2)):
            if self._obey():
                self._circuit.close()  # it is judged by the new order, not by what it was parked for
                return
            self._reporter.progressed()
            self._retouch()

    def _retouch(self) -> None:
        if self._ledger.held is None and time.time() - self._reporter.status.last_commit_at > RETOUCH_SECONDS:
            with self._lock:
                self._ledger.touch()
            self._reporter.update(last_commit_at=time.time())

    def _follow(self, turns: TriggerHistory) -> None:
        ended = list(turns.new())
        for turn in ended:
            self._turned(turn)
            if self._ledger.held is None:
                self._metrics.records(turn.events)
                self._metrics.lag(turn.lag)
                self._reporter.update(lag=turn.lag)
        if ended or turns.waiting():
            self._reporter.progressed()

    def _turned(self, turn: TriggerProgress) -> None:
        """A trigger has ended; its batch, if it had one, is committed."""

    def _compare(self, turns: TriggerHistory) -> None:
        """Forgets what the live job has decided meanwhile, and is ready once it is warm and keeps up with it."""
        with self._lock:
            behind = self._ledger.behind()
        if turns.warm and behind <= CAUGHT_UP_OFFSETS:
            self._reporter.update(phase=Phase.READY)

    def _obey(self) -> bool:
        """Carries out a newer order; whether the query has to be planned anew for it."""
        try:
            order = self._orders.newer()
            terms = EffectiveConfig.of(self._loaded, order) if order else self._terms
        except ConfigError as error:
            logger().error(error.message, hint="everything stays as it was")
            self._reporter.update(rejected=str(error), revision=self._orders.current.revision)
            return False
        if order is None:
            return False
        with self._lock:  # a batch sees either order whole
            takes_over = self._order.standby and not order.standby and not order.shared and not self.begins_behind
            changed, shared = terms != self._terms, order.shared != self._order.shared
            self._terms, self._order = terms, order
            if takes_over:
                self._take_over()
        if changed:
            self._plan.settings, self._limit = terms.settings, BatchLimit(terms.max_batch)
        else:
            self._reporter.update(rejected="", revision=order.revision)
        return changed or shared
