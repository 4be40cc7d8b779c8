"""Evaluates one detector as its job does, but without Kafka.

The expressions of a rule and of a fold are evaluated once over all events; a fold then receives them in batches. An
aggregate runs as a streaming query, because watermark and update mode exist only there. `process_streaming` runs any
kind so. A query that Spark cannot stream is rejected as in the job. Events on which the author's code raises are found
and become dead letters.
"""

import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lozenge.detector.definition import Settings
from lozenge.detector.fold import Fold, expressions
from lozenge.detector.loader import LoadedDetector
from lozenge.detector.tables.reference_tables import ReferenceTables
from lozenge.errors import DetectorError
from lozenge.host.tool_host import tool_session
from lozenge.job.batch_result import BatchResult, FailedRecord, joined
from lozenge.job.commit.alert_encoder import AlertEncoder
from lozenge.job.identity import Identity
from lozenge.job.operators.fold_operator import OFFSET, PARTITION, FoldOperator
from lozenge.job.operators.operator import Operator
from lozenge.job.query.plan_checks import check_streamable
from lozenge.job.query.poison_search import Ranges, find_poison
from lozenge.job.query.query_builder import build_operator, check_plan, detect
from lozenge.protocol.coverage import Versions
from lozenge.spark.internals.python_api import capture_call_sites
from lozenge.testing.events import PLATFORM, positions
from lozenge.testing.stream_harness import CommittedState, run_stream
from lozenge.testing.table_rows import complete

_RELEASE = "test"
_FAST = {
    # a few rows are one task, not one for each slot of the host
    "spark.sql.leafNodeDefaultParallelism": "1",
    # state in memory and in one partition: the test of an aggregate has a hundred tiny batches
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "1",
    # in update mode a batch without events emits nothing
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}


@cache
def spark() -> SparkSession:
    """The kit's Spark session, one per process; the first call takes some seconds."""
    return tool_session("lozenge-testing", _FAST)


class Harness:
    """One detector with its settings and tables; `encoder` encodes its alerts."""

    def __init__(
        self, loaded: LoadedDetector, settings: Settings, rows: Mapping[str, Sequence[Mapping[str, Any]]]
    ) -> None:
        manifest = loaded.declaration
        self._loaded, self._manifest, self._settings = loaded, manifest, settings
        self._identity = Identity(loaded.name, _RELEASE, True, loaded.key, PLATFORM, loaded.stream)
        files = ReferenceTables({n: t for n, t in manifest.tables.items() if n not in rows}, loaded.folder)
        versions = Versions(settings.digest, files.take())
        self._files, self._tables = files, files.load(spark())  # what the frames read lives as long as `files`
        for name, given in rows.items():
            table = manifest.tables[name]
            self._tables[name] = spark().createDataFrame(complete(given, table), table.ddl or None)
        self.encoder = AlertEncoder(self._identity, manifest, versions)

    def process(self, batch: pa.Table, size: int | None) -> BatchResult:
        """Alerts in order, and the failed events and timers, in batches of `size` (None: all in one)."""
        run = self._stream if self._manifest.kind.state_in_checkpoint else self._batches
        failed: list[FailedRecord] = []
        try:
            results = run(batch, size)
        except DetectorError:
            raise
        except Exception:  # whatever the author's code or Spark raises
            failed = find_poison(_ranges(batch), lambda ranges: self._evaluate(_within(batch, ranges)))
            if not failed:
                raise
            results = run(_without(batch, failed), size)
        return joined(results, failed)

    def process_streaming(self, batches: Sequence[pa.Table], killed: int | None = None) -> BatchResult:
        """The output of a job that reads these batches as a stream, whatever its kind.

        With `killed`, the job dies within the batch of that number, before its commit. A second run restores the
        committed state. An aggregate reads its open windows again; every other kind resumes at that batch.
        """
        state: CommittedState = {}
        results = self._run_stream(batches if killed is None else batches[: killed + 1], state, killed=killed)
        if killed is not None:
            resumed = 0 if self._manifest.kind.state_in_checkpoint else killed
            results += self._run_stream(batches[resumed:], state)
        return joined(results, [])

    def process_frame(self, events: DataFrame) -> BatchResult:
        """One batch over a DataFrame of events, such as history from a file. It needs the platform's column.

        An aggregate is evaluated without a watermark, so it emits every alert.
        """
        operator = self._operator(self._detect(events))
        return operator.process(operator.frame().toArrow())

    def _batches(self, batch: pa.Table, size: int | None) -> list[BatchResult]:
        self._check_stream(batch.schema)
        operator = self._operator(self._detect(spark().createDataFrame(batch)))
        rows = operator.frame().toArrow()
        if not isinstance(operator, FoldOperator):
            return [operator.process(rows)]
        rows = rows.sort_by([(OFFSET, "ascending"), (PARTITION, "ascending")])
        size = size or max(rows.num_rows, 1)
        return [operator.process(rows.slice(start, size)) for start in range(0, rows.num_rows, size)]

    def _stream(self, batch: pa.Table, size: int | None) -> list[BatchResult]:
        size = size or max(batch.num_rows, 1)
        return self._run_stream([batch.slice(start, size) for start in range(0, max(batch.num_rows, 1), size)], {})

    def _run_stream(
        self, batches: Sequence[pa.Table], state: CommittedState, killed: int | None = None
    ) -> list[BatchResult]:
        lateness = self._manifest.lateness  # only aggregates have one
        return run_stream(spark(), batches, lateness, self._streaming_operator, state, killed=killed)

    def _streaming_operator(self, events: DataFrame) -> Operator:
        result = self._detect(events)
        check_plan(self._loaded.name, self._loaded, expressions(result))
        return self._operator(result)

    def _detect(self, events: DataFrame) -> "DataFrame | Fold[Any]":
        with capture_call_sites():
            return detect(self._loaded.name, self._loaded, events, self._settings, self._tables)

    def _operator(self, result: "DataFrame | Fold[Any]") -> Operator:
        partitions = range(PLATFORM.partitions)
        return build_operator(result, self._loaded, self._identity, self._settings, len(partitions), partitions)

    def _evaluate(self, batch: pa.Table) -> None:
        frame = expressions(self._detect(spark().createDataFrame(batch)))
        frame.write.format("noop").mode("overwrite").save()

    def _check_stream(self, schema: pa.Schema) -> None:
        with tempfile.TemporaryDirectory() as folder:
            columns = spark().createDataFrame(schema.empty_table()).schema
            frame = expressions(self._detect(spark().readStream.schema(columns).parquet(folder)))
        check_streamable(self._loaded.name, frame)
        check_plan(self._loaded.name, self._loaded, frame)


def _ranges(batch: pa.Table) -> Ranges:
    """Every offset of the batch, by partition."""
    ranges: Ranges = {}
    for partition, offset in positions(batch):
        ranges[partition] = (0, offset + 1)
    return ranges


def _within(batch: pa.Table, ranges: Ranges) -> pa.Table:
    empty = (0, 0)
    kept = [ranges.get(p, empty)[0] <= o < ranges.get(p, empty)[1] for p, o in positions(batch)]
    return batch.filter(pa.array(kept, pa.bool_()))


def _without(batch: pa.Table, failed: Sequence[FailedRecord]) -> pa.Table:
    skipped = {(p.partition, p.offset) for p in failed}
    kept = batch.filter(pa.array([position not in skipped for position in positions(batch)], pa.bool_()))
    return kept if kept.num_rows else batch.schema.empty_table()  # Spark takes no column without a chunk
