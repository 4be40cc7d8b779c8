"""Runs one detector until it is told to stop.

The order, in numbers that come back below:
1. claim (see `ledger`), or stand by: read the group's offsets and claim once told to take over;
2. plan the query at the group's offsets, restore the state that the state topic holds, start (an
   aggregate's own checkpoint continues if it is the one that committed last; else it counts its open
   windows again);
3. per batch: judge, then commit alerts, dead letters, state and offsets in one transaction; a job that
   stands by holds all of it back, and its first transaction begins exactly where its predecessor's last ended;
4. when a batch fails: learn a new schema, shrink the batch, or find the poison; when settings or tables
   change: end between two batches; then plan again in the same session. Whatever else happens ends the
   process, and a restart is always safe.
"""

import re
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from lozenge import topics
from lozenge.admin import check_topics, partitions
from lozenge.errors import ConfigError, DetectorError, LozengeError
from lozenge.job.batch_limit import BatchLimit
from lozenge.job.checkpoint import Checkpoint
from lozenge.job.hosts import Host
from lozenge.job.identity import Identity
from lozenge.job.judgement import Judgement
from lozenge.job.ledger import Ledger
from lozenge.job.orders import Orders
from lozenge.job.output import AlertWriter
from lozenge.job.plan import Plan
from lozenge.job.poison import find_poison, first_line, refuse_too_many
from lozenge.job.positions import Stamp
from lozenge.job.report import Phase, Reporting
from lozenge.job.rewind import rewound
from lozenge.job.settings import JobSettings
from lozenge.job.terms import Terms
from lozenge.job.turns import Turns
from lozenge.kafka import KafkaSettings
from lozenge.loading import Loaded
from lozenge.logs import logger
from lozenge.metrics import Metrics
from lozenge.reading import bounds
from lozenge.registry import announce
from lozenge.schemas import newest
from lozenge.spark_avro import UNKNOWN_SCHEMA

STOP_SECONDS = 20.0
RETOUCH_SECONDS = 6 * 3600.0
"""An idle group commits again this often, so that its offsets never expire."""
LOOK_SECONDS = 2.0
"""How often it looks for new tables."""
COMPARE_SECONDS = 0.5
"""How often a job that stands by looks how far the live one has come."""
CAUGHT_UP_OFFSETS = 1_000
"""It is ready while it is warm and no further than this behind the live one."""
SNAPSHOT_TRIES = 5
_OTHER_STATE = re.compile(r"STREAMING_STATEFUL_OPERATOR_NOT_MATCH|STATE_STORE_\w*SCHEMA")


class Runner:
    """One detector's job. `run` returns after `stop`, or raises what a person or a restart must mend."""

    def __init__(
        self, loaded: Loaded, job: JobSettings, kafka: KafkaSettings, spark: SparkSession, metrics: Metrics
    ) -> None:
        self._loaded, self._declaration = loaded, loaded.declaration
        self._job, self._kafka, self._metrics = job, kafka, metrics
        self._identity = identity = Identity.of(loaded, job)
        self._partitions = topics.EVENT_PARTITIONS
        self._orders = Orders(job)
        self._order = self._orders.current
        self._terms = Terms.of(loaded, self._order)
        self._plan = Plan(loaded, identity, self._terms.settings, kafka, spark)
        self._limit = BatchLimit(self._terms.max_batch)
        self._reporting = Reporting(job.folder)
        self._checkpoint = Checkpoint((job.folder or job.work / identity.app / job.release) / "checkpoint")
        self._ledger = Ledger(kafka, identity, self._partitions, self._declaration.missed)
        self._host: Host | None = None
        self._settled = True  # nothing has been judged that is neither committed nor held
        self._batch = -1
        self._failure: Exception | None = None
        self._lock = threading.RLock()  # batches come in Spark's thread, orders in ours
        self._stop = threading.Event()

    @property
    def offsets(self) -> dict[int, int]:
        """What is decided: the next offset by partition."""
        return self._ledger.offsets

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
        self._reporting.say(session_at=time.time(), generation=self._order.generation, revision=self._order.revision)
        if not self._order.standby:
            self._ledger.claim(self._order.generation, self._terms.settings.digest)
        while not self._stop.is_set():
            error = self._watch(self._start())
            if error is not None and not self._stop.is_set():
                self._recover(error)
        self._ledger.close()

    # 1. stand by and take over

    def _take_over(self) -> None:
        """Claims between two batches. From then on its predecessor decides nothing more."""
        self._ledger.claim(self._order.generation, self._reporting.now.digest)  # by which it has judged so far
        assert self._host is not None
        if self._settled:  # else its query is about to end, and the next one begins where the predecessor ended
            self._settle(self._host)

    def _settle(self, host: Host) -> None:
        since = dict(self.offsets)
        told = self._ledger.settle(host, self._alerts, self._stamp())
        if told is not None:
            self._reporting.took_over(self._order.generation, since, self.offsets)
            self._count(told)
            logger().info("took over", generation=self._order.generation, since=since, told=len(told.findings))

    def _begin_live(self) -> None:
        """Its query ended between the claim and the first transaction: it begins where its predecessor ended."""
        if self._declaration.kind != "rule" and self._job.state != "keep":
            raise DetectorError(
                f"taking over {self._identity.app}: its query ended before it had told what it made while it stood by",
                hint="see the log above; nothing was told, and the release before goes on at the same offsets",
            )
        self._ledger.held = None
        self._reporting.took_over(self._order.generation, self.offsets, self.offsets)
        logger().info("took over", generation=self._order.generation, since=self.offsets)

    # 2. plan, restore, start

    def _start(self) -> StreamingQuery:
        aggregate, ledger, terms = self._declaration.kind == "aggregate", self._ledger, self._terms
        inherited = self._host if self._settled and not self._order.standby else None
        self._failure, self._host, self._batch, self._settled = None, None, -1, True
        if not self._order.standby and ledger.held is not None:
            self._begin_live()
            inherited = None
        if not self._order.standby:
            ledger.judge_by(terms.settings.digest)
        self._tables = self._plan.tables_version()
        self._alerts = AlertWriter(
            self._identity,
            self._partitions,
            title=self._declaration.title,
            severity=self._declaration.severity,
            digest=terms.settings.digest,
        )
        host, keys = self._remembering(inherited)
        logger().info("query starts", offsets=ledger.read, keys=keys, checkpoint=self._checkpoint.id)
        writer = host.frame().writeStream.queryName(self._identity.app).foreachBatch(self._on_batch(host))
        with self._lock:  # no batch before it is known
            query = (
                writer.outputMode("update" if aggregate else "append")
                .option("checkpointLocation", str(self._checkpoint.folder))
                .trigger(processingTime=f"{int(terms.trigger.total_seconds() * 1000)} milliseconds")
                .start()
            )
            self._host = host
            phase = Phase.STANDBY if self._order.standby else Phase.LIVE
            self._reporting.began(phase, self._order.revision, terms.settings.digest, dict(self.offsets))
        return query

    def _remembering(self, before: Host | None) -> tuple[Host, int]:
        """The host of the next query, with the memory of `before` or what is stored; and its number of keys.

        Where it stands by, the live job writes offsets and state meanwhile: they are read again until they belong
        together. After some tries it takes what it has: a fold ignores the latest ids of each key.
        """
        for _ in range(SNAPSHOT_TRIES):
            if self._order.standby:
                self._ledger.stand_by()
            self._ledger.read = self._resumed() if self._declaration.kind == "aggregate" else self._anew()
            host = self._plan.host(self._ledger.read, self._limit.value, self._alerts, self._partitions)
            keys = host.inherit(before) if before is not None else self._restore(host)
            if not self._order.standby or self._declaration.kind != "stateful" or not self._ledger.moved():
                break
        return host, keys

    def _restore(self, host: Host) -> int:
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
            return checkpoint.planned(stamp.batch) or dict(self.offsets)
        begin = self._anew()
        if stamp.batch < 0 or (self._order.standby and self._job.state == "fresh"):  # nothing was counted, or shall be
            return begin
        return rewound(self._kafka, self._identity.input, begin, self._declaration.memory)

    # 3. one batch

    def _on_batch(self, host: Host) -> Callable[[DataFrame, int], None]:
        def on_batch(frame: DataFrame, batch: int) -> None:
            try:
                with self._lock:
                    self._batch = batch
                    self._run_batch(host, frame)
            except Exception as error:
                self._failure = error  # as it is: through the JVM it would come back as text
                raise

        return on_batch

    def _run_batch(self, host: Host, frame: DataFrame) -> None:
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
        judged = host.judge(frame.toArrow())
        errors = [p.error for p in judged.poisoned] + [u.error for u in judged.unplaced]
        refuse_too_many(errors, sum(ends[p] - ledger.read[p] for p in ends))
        judged = judged._replace(poisoned=[*ledger.undecided(self._plan.excluded, ends), *judged.poisoned])
        ledger.read |= ends
        if ledger.held is not None:
            ledger.held.add(judged)
            if not self._order.standby:
                self._settle(host)
        else:
            events = ledger.commit(host, judged, self._alerts, ends, stamp)
            self._limit.succeeded()
            self._measure(judged, events, started)
        if ledger.held is None:  # one that stands by may begin again where it began
            self._plan.excluded = [p for p in self._plan.excluded if p.offset >= ledger.read[p.partition]]
        self._settled = True
        self._reporting.first_batch()

    def _stamp(self) -> Stamp:
        return Stamp(self._order.generation, self._checkpoint.id, self._batch)

    def _measure(self, judged: Judgement, events: int, started: float) -> None:
        letters = len(judged.poisoned) + len(judged.unplaced)
        self._reporting.committed(self._batch, self.offsets, events, letters)
        self._metrics.batch(time.monotonic() - started)
        self._count(judged)

    def _count(self, judged: Judgement) -> None:
        stages = [p.stage for p in judged.poisoned] + [u.stage for u in judged.unplaced]
        self._metrics.emitted(len(judged.findings))
        for stage in stages:
            self._metrics.dead_letters(1, stage)
        now = datetime.now(UTC)
        for finding in judged.findings:
            if finding.arrived is not None:
                self._metrics.latency((now - finding.arrived).total_seconds())

    # 4. watch, obey, recover

    def _watch(self, query: StreamingQuery) -> Exception | None:
        """None when the query ended as it should (told to stop, or to be planned anew); else why it failed."""
        turns, looked, compared = Turns(query), time.monotonic(), time.monotonic()
        while True:
            try:
                ended = query.awaitTermination(0.05 if self._order.standby else 0.2)  # type: ignore[arg-type]
            except Exception as error:
                return self._failure or error
            if ended:
                return self._failure or DetectorError(f"running {self._identity.app}: its query ended by itself")
            self._follow(turns)
            now = time.monotonic()
            if self._order.standby and now - compared > COMPARE_SECONDS:
                compared = now
                self._compare(turns)
            elif self._ledger.held is None and time.time() - self._reporting.now.committed_at > RETOUCH_SECONDS:
                with self._lock:
                    self._ledger.touch()
                self._reporting.say(committed_at=time.time())
            anew = self._obey() or self._limit.grow()
            if now - looked > LOOK_SECONDS:
                looked = now
                anew = anew or self._plan.tables_version() != self._tables
            if anew or self._stop.is_set():
                _stop_at_boundary(query)
                return None

    def _follow(self, turns: Turns) -> None:
        ended = list(turns.new())
        for events, lag in ended:
            if self._ledger.held is None:
                self._metrics.records(events)
                self._metrics.lag(lag)
                self._reporting.say(lag=lag)
        if ended or turns.waiting():
            self._reporting.turned()

    def _compare(self, turns: Turns) -> None:
        """Forgets what the live job has decided meanwhile, and is ready once it is warm and keeps up with it."""
        with self._lock:
            behind = self._ledger.behind()
        if turns.warm and behind <= CAUGHT_UP_OFFSETS:
            self._reporting.say(phase=Phase.READY)

    def _obey(self) -> bool:
        """Carries out a newer order; whether the query has to be planned anew for it."""
        try:
            order = self._orders.newer()
            terms = Terms.of(self._loaded, order) if order else self._terms
        except ConfigError as error:
            logger().error(error.message, hint="everything stays as it was")
            self._reporting.say(refused=str(error), revision=self._orders.current.revision)
            return False
        if order is None:
            return False
        with self._lock:  # a batch sees either order whole
            takes_over = self._order.standby and not order.standby
            changed, self._terms, self._order = terms != self._terms, terms, order
            if takes_over:
                self._take_over()
        if changed:
            self._plan.settings, self._limit = terms.settings, BatchLimit(terms.max_batch)
        else:
            self._reporting.say(refused="", revision=order.revision)
        return changed

    def _recover(self, error: Exception) -> None:
        """Changes the plan so that the next start gets further, or raises."""
        if isinstance(error, LozengeError):
            raise error
        text, log = str(error), logger()
        if "spark.driver.maxResultSize" in text and self._limit.shrink():
            self._checkpoint.forget(self._batch)
            log.warning("batch too large for the driver, halved", max_batch=self._limit.value)
            return
        if _OTHER_STATE.search(text):
            self._checkpoint.renew()
            log.warning("what was counted does not fit these settings: open windows are counted again")
            return
        unknown = re.search(UNKNOWN_SCHEMA + r":(\d+)", text)
        if unknown and self._plan.learn(int(unknown.group(1))):
            log.info("schema learned, query starts again", schema=int(unknown.group(1)))
            return
        partitions(self._kafka)  # an unreachable broker is never a record's fault
        ends = self._checkpoint.planned(self._batch)
        found = find_poison({p: (self._ledger.read[p], end) for p, end in (ends or {}).items()}, self._plan.evaluate)
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
