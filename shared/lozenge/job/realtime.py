"""Runs a rule in Spark's Real-Time Mode: an event is judged and its alert written when it comes, in milliseconds.

Spark reads, judges and writes without Python and without a transaction. A batch only is the time from one commit to the
next: when it ends, the group moves on, with dead letters, in the transaction of every job. Each alert is told once:
- a task hands alerts over in the order of its events, and a batch ends when all of them are acknowledged;
- so whatever ends the query, the group's offsets lie before everything that was not told;
- the next start judges from there on, and leaves out every alert that it finds told (see `told`).

Spark's sink knows no fence. So a successor begins only when its predecessor has ended, which the agent sees to. One
that it cannot see (on a machine that was cut off) ends at its next commit, which is fenced, and what it tells until
then comes under ids that are told already.
"""

import time
from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from lozenge import topics
from lozenge.declaration import Declaration
from lozenge.job.alert_rows import ALERT_ID, SECONDS, SINK
from lozenge.job.hosts import Host
from lozenge.job.judgement import Judgement
from lozenge.job.positions import REALTIME, Stamp
from lozenge.job.runner import Runner
from lozenge.job.turns import Turn
from lozenge.logs import logger
from lozenge.reading import bounds
from lozenge.spark_clock import COUNT, counted, latencies
from lozenge.spark_producer import SinkProducer

_TOLD = "told"
_OPTIONS = {
    "kafka.acks": "all",
    "kafka.enable.idempotence": "true",
    "kafka.linger.ms": "0",
}
"""Each alert at once, acknowledged by all replicas, and once however often it has to be sent."""


def runner_of(declaration: Declaration) -> type[Runner]:
    """What runs a detector that is declared so."""
    return RealtimeRunner if declaration.realtime else Runner


def slots(declaration: Declaration) -> int:
    """How many tasks must run at once: in Real-Time Mode one for each partition, and they may be more than cores."""
    return topics.EVENT_PARTITIONS if declaration.realtime else 1


class RealtimeRunner(Runner):
    """The job of a rule whose `mode` is "realtime"; see `Runner` for all that both have."""

    begins_behind = True
    _max_batch = None
    _producer: SinkProducer | None = None

    def _writer(self, host: Host) -> "DataStreamWriter":
        self._silence()
        self._producer = SinkProducer(self._spark, self._identity.app, self._kafka.spark() | _OPTIONS)
        rows = self._without_told(self._plan.written(host.frame()))
        rows = rows.observe(_TOLD, *counted(F.col(SECONDS))).select(*SINK)
        writer = rows.writeStream.format("kafka").options(**self._producer.options).outputMode("update")
        return writer.trigger(realTime=self._interval)  # type: ignore[call-overload, no-any-return]

    def _without_told(self, rows: DataFrame) -> DataFrame:
        told = self._ledger.told()
        if not told:
            return rows
        ends = self._ends()
        again = sum(ends[p] - offset for p, offset in self.offsets.items())
        logger().info("judges again what came since the last commit", events=again, told=len(told))
        known = self._spark.createDataFrame([(name,) for name in told], f"{ALERT_ID} string")
        return rows.join(F.broadcast(known), ALERT_ID, "left_anti")

    def _stop_at_boundary(self, query: StreamingQuery, *, within: float) -> None:
        """At once: what it has not committed is judged again, and its batch may last for a minute."""
        query.stop()
        self._silence()

    def _turned(self, turn: Turn) -> None:
        """Commits how far a batch has come: all that it had to tell is acknowledged."""
        ends, ledger = turn.ends, self._ledger
        if ends == self.offsets:
            return
        assert self._host is not None
        judged = Judgement([], ledger.undecided(self._plan.excluded, ends))
        self._batch = turn.progress.batchId
        self._metrics.begun(sum(ends[p] - self.offsets[p] for p in ends))
        stamp = Stamp(self._order.generation, REALTIME, self._batch)
        events = ledger.commit(self._host, judged, self._alerts, ends, stamp)
        ledger.read |= ends
        self._metrics.committed(events)
        self._measure(judged, events, time.monotonic() - turn.progress.batchDuration / 1000)
        told = turn.progress.observedMetrics[_TOLD].asDict()
        self._metrics.emitted(told[COUNT])
        for count, seconds in latencies(told):
            self._metrics.latency(seconds, count)
        self._plan.excluded = [p for p in self._plan.excluded if p.offset >= ends[p.partition]]
        self._reporting.first_batch()

    def _failed_at(self) -> Mapping[int, int]:
        """The topic's end: how far a batch has read, Spark knows only when it ends well."""
        self._silence()
        return self._ends()

    def _ends(self) -> dict[int, int]:
        found = bounds(self._kafka, self._identity.input, self._partitions)
        return {p: end for p, (_, end) in found.items() if p in self.offsets}

    def _silence(self) -> None:
        """What a query that has ended has handed over and not sent must not come behind what is read back."""
        if self._producer is not None:
            self._producer.close()
            self._producer = None
