"""Rules in Real-Time Mode: Spark reads, judges and writes, without Python and without a transaction.

A task hands alerts over in the order of its events, and a batch ends when all of them are acknowledged. What was told
beyond the group's offsets is found in the alert topic and left out by its id (see `told`).

Spark's sink knows no fence. So a successor begins only when its predecessor has ended, which the agent sees to. One
that it cannot see (on a machine that was cut off) ends at its next commit, which is fenced, and what it tells until
then comes under ids that are told already.
"""

from collections.abc import Collection, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from lozenge.job.drivers.realtime import RealtimeLoop
from lozenge.job.operators.operator import Operator
from lozenge.job.query.alert_columns import ALERT_ID, TOOK
from lozenge.process.logging import logger
from lozenge.spark.kafka_sink import AT_ONCE, COLUMNS, SinkProducer
from lozenge.spark.row_latency import COUNT, counted, latencies
from lozenge.spark.triggers import TriggerProgress

_TOLD = "told"


class RealtimeRuleLoop(RealtimeLoop):
    """The job of a rule whose `mode` is "realtime"."""

    _producer: SinkProducer | None = None

    def _writer(self, host: Operator) -> DataStreamWriter:
        self._silence()
        self._producer = SinkProducer(self._spark, self._identity.app, self._kafka.spark() | AT_ONCE)
        return self._in_real_time(self._without(self._told(), host), self._producer.options)

    def _rehearsed(self, host: Operator) -> DataFrame:
        return self._without([""], host)  # there will be some, and they are another plan

    def _told(self) -> Collection[str]:
        if told := self._ledger.told():
            ends = self._ends()
            again = sum(ends[p] - offset for p, offset in self.offsets.items())
            logger().info("judges again what came since the last commit", events=again, told=len(told))
        return told

    def _without(self, told: Collection[str], host: Operator) -> DataFrame:
        rows = self._plan.written(host.frame())
        if told:
            # of a list Spark makes an RDD, for which it starts processes of Python: four seconds, and 200 MB that stay
            known = self._spark.createDataFrame(pa.table({ALERT_ID: pa.array(list(told), pa.string())}))
            rows = rows.join(F.broadcast(known), ALERT_ID, "left_anti")
        return rows.observe(_TOLD, *counted(F.col(TOOK))).select(*COLUMNS)

    def _stop_at_boundary(self, query: StreamingQuery, *, within: float) -> None:
        super()._stop_at_boundary(query, within=within)
        self._silence()

    def _commits(self, turn: TriggerProgress) -> bool:
        """A batch without events has told nothing."""
        return turn.ends != self.offsets

    def _commit(self, turn: TriggerProgress) -> None:
        """All that its batch had to tell is acknowledged."""
        super()._commit(turn)
        told = turn.progress.observedMetrics[_TOLD].asDict()
        self._metrics.emitted(told[COUNT])
        for count, seconds in latencies(told):
            self._metrics.latency(seconds, count)

    def _failed_at(self) -> Mapping[int, int]:
        self._silence()
        return super()._failed_at()

    def _silence(self) -> None:
        """What a query that has ended has handed over and not sent must not come behind what is read back."""
        if self._producer is not None:
            self._producer.close()
            self._producer = None
