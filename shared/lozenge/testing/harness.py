"""Evaluates one detector as its job would, with Kafka left out.

A rule, a model and a fold's own expressions are evaluated once over all events; the fold is then fed in
batches. An aggregate runs as a real streaming query, because its watermark and its update mode have no
counterpart outside of one; so does any kind in `process_streaming`. What Spark cannot stream is refused
as it would be in the job, and events on which the author's code raises are found and put aside.
"""

import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from lozenge.contracts.topics import EVENT_PARTITIONS
from lozenge.detector.definition import Settings
from lozenge.detector.fold import Fold, expressions
from lozenge.detector.loader import LoadedDetector
from lozenge.detector.reference_tables import load
from lozenge.errors import DetectorError
from lozenge.job.batch_result import BatchResult, FailedRecord, joined
from lozenge.job.commit.alert_encoder import AlertEncoder
from lozenge.job.identity import Identity
from lozenge.job.operators.aggregate_operator import AggregateOperator
from lozenge.job.operators.emitted_alerts import EmittedAlerts
from lozenge.job.operators.fold_operator import FoldOperator
from lozenge.job.operators.operator import Operator
from lozenge.job.operators.rule_operator import RuleOperator
from lozenge.job.query.poison_search import Ranges, find_poison, first_line
from lozenge.job.query.realtime_plan_check import refuse_ineligible
from lozenge.job.query.result_check import refuse_misfit
from lozenge.job.query.stateful_plan_check import refuse_state
from lozenge.spark.session import MOST_SLOTS, spark_session
from lozenge.testing.events import positions
from lozenge.testing.stream_harness import Memory, stream

_RELEASE = "test"


_QUICK = {
    # state in memory and in one piece: an aggregate's test is a hundred tiny batches
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "1",
    # in update mode a batch without events tells nothing
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}


@cache
def spark() -> SparkSession:
    """The Spark session of the kit, one per process; the first call takes some seconds."""
    # the first session of a process decides on its slots, and another one may run a query in Real-Time Mode; but what
    # is made of a test's events is in two parts. What fails in a test names the author's line
    conf = {"spark.default.parallelism": "2", "spark.python.sql.dataFrameDebugging.enabled": "true"}
    first = spark_session("lozenge-testing", cores=MOST_SLOTS, conf=conf)
    session = first.newSession()  # leaves other sessions' settings alone
    for name, value in _QUICK.items():
        session.conf.set(name, value)
    return session


class Harness:
    """One detector with its settings and tables; `encoder` encodes its alerts."""

    def __init__(
        self, loaded: LoadedDetector, settings: Settings, rows: Mapping[str, Sequence[Mapping[str, Any]]]
    ) -> None:
        declaration = loaded.declaration
        self._loaded, self._declaration, self._settings = loaded, declaration, settings
        self._identity = Identity(loaded.name, _RELEASE, True, declaration.key)
        self._tables = load(spark(), {n: t for n, t in declaration.tables.items() if n not in rows}, loaded.folder)
        for name, given in rows.items():
            self._tables[name] = spark().createDataFrame(list(given), declaration.tables[name].columns or None)
        self.encoder = AlertEncoder(self._identity, declaration, settings)

    def process(self, batch: pa.Table, size: int | None) -> BatchResult:
        """Findings in order, and the events and timers that raise, of a run in batches of `size`."""
        run = self._as_stream if self._declaration.kind == "aggregate" else self._as_batches
        failed: list[FailedRecord] = []
        try:
            judgements = run(batch, size)
        except DetectorError:
            raise
        except Exception:  # whatever the author's code or Spark raises
            failed = find_poison(_ranges(batch), lambda ranges: self._evaluate(_within(batch, ranges)))
            if not failed:
                raise
            judgements = run(_without(batch, failed), size)
        return joined(judgements, failed)

    def process_streaming(self, batches: Sequence[pa.Table], killed: int | None = None) -> BatchResult:
        """What a job tells that reads these batches, as a stream of whatever kind it is.

        With `killed` it ends within the batch of that number, before anything of it is committed. Then it begins again
        with what was committed: an aggregate counts its open windows again, any other goes on with that batch.
        """
        memory: Memory = {}
        told = self._live(batches if killed is None else batches[: killed + 1], memory, lost=killed)
        if killed is not None:
            again = 0 if self._declaration.kind == "aggregate" else killed
            told += self._live(batches[again:], memory)
        return joined(told, [])

    def process_frame(self, events: DataFrame) -> BatchResult:
        """One batch over a DataFrame of events, such as history from a file; it needs the platform's column.

        An aggregate is evaluated without a watermark: it tells every crossing.
        """
        host = self._host(self._detect(events))
        return host.process(host.frame().toArrow())

    def _as_batches(self, batch: pa.Table, size: int | None) -> list[BatchResult]:
        self._refuse_unstreamable(batch.schema)
        host = self._host(self._detect(spark().createDataFrame(batch)))
        rows = host.frame().toArrow()
        if not isinstance(host, FoldOperator):
            return [host.process(rows)]
        rows = rows.sort_by([("_input_offset", "ascending"), ("_input_partition", "ascending")])
        size = size or max(rows.num_rows, 1)
        return [host.process(rows.slice(start, size)) for start in range(0, rows.num_rows, size)]

    def _as_stream(self, batch: pa.Table, size: int | None) -> list[BatchResult]:
        size = size or max(batch.num_rows, 1)
        return self._live([batch.slice(start, size) for start in range(0, max(batch.num_rows, 1), size)], {})

    def _live(self, batches: Sequence[pa.Table], memory: Memory, lost: int | None = None) -> list[BatchResult]:
        lateness = self._declaration.lateness  # only aggregates have one
        return stream(spark(), batches, lateness, self._streamed, memory, lost=lost)

    def _streamed(self, events: DataFrame) -> Operator:
        result = self._detect(events)
        self._refuse_ineligible(expressions(result))
        return self._host(result)

    def _detect(self, events: DataFrame) -> "DataFrame | Fold[Any]":
        result = self._loaded.detector.detect(events, self._settings, self._tables)
        return refuse_misfit(self._loaded.name, self._declaration, result)

    def _host(self, result: "DataFrame | Fold[Any]") -> Operator:
        state = self._identity.state
        if isinstance(result, Fold):
            return FoldOperator(result, self._settings, self._declaration.key_column, state, range(EVENT_PARTITIONS))
        if self._declaration.kind == "aggregate":
            return AggregateOperator(result, EmittedAlerts(self._identity, EVENT_PARTITIONS))
        return RuleOperator(result)

    def _evaluate(self, batch: pa.Table) -> None:
        frame = expressions(self._detect(spark().createDataFrame(batch)))
        frame.write.format("noop").mode("overwrite").save()

    def _refuse_unstreamable(self, schema: pa.Schema) -> None:
        jvm: Any = spark()._jvm
        with tempfile.TemporaryDirectory() as folder:
            columns = spark().createDataFrame(schema.empty_table()).schema
            frame: Any = expressions(self._detect(spark().readStream.schema(columns).parquet(folder)))
        checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
        append = jvm.org.apache.spark.sql.streaming.OutputMode.Append()
        try:
            checker.checkForStreaming(frame._jdf.queryExecution().analyzed(), append)
        except AnalysisException as error:
            raise DetectorError(
                f"planning {self._loaded.name}: Spark cannot run it as a stream: {first_line(error)}",
                hint='use column expressions and joins with tables; to group or count, declare kind = "aggregate"',
            ) from error
        refuse_state(self._loaded.name, frame)
        self._refuse_ineligible(frame)

    def _refuse_ineligible(self, frame: DataFrame) -> None:
        if self._declaration.realtime:
            refuse_ineligible(self._loaded.name, self._declaration, frame)


def _ranges(batch: pa.Table) -> Ranges:
    """Every offset of the batch, by partition."""
    ranges: Ranges = {}
    for partition, offset in positions(batch):
        ranges[partition] = (0, offset + 1)
    return ranges


def _within(batch: pa.Table, ranges: Ranges) -> pa.Table:
    nowhere = (0, 0)
    kept = [ranges.get(p, nowhere)[0] <= o < ranges.get(p, nowhere)[1] for p, o in positions(batch)]
    return batch.filter(pa.array(kept, pa.bool_()))


def _without(batch: pa.Table, failed: Sequence[FailedRecord]) -> pa.Table:
    out = {(p.partition, p.offset) for p in failed}
    return batch.filter(pa.array([place not in out for place in positions(batch)], pa.bool_()))
