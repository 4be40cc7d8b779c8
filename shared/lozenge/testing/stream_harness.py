"""Runs a detector as a real streaming query: one file per batch, and a dictionary instead of its state topic."""

import os
import tempfile
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from lozenge.job.batch_result import BatchResult
from lozenge.job.operators.operator import Operator
from lozenge.job.query import canonical_events
from lozenge.kafka.compacted_topic import Stored
from lozenge.testing.events import positions

CommittedState = dict[tuple[int, bytes], bytes]
"""The value of every live key of a state topic, by partition and key."""


def run_stream(
    spark: SparkSession,
    batches: Sequence[pa.Table],
    lateness: timedelta | None,
    operator_of: Callable[[DataFrame], Operator],
    state: CommittedState,
    *,
    killed: int | None = None,
) -> list[BatchResult]:
    """One run of a job: it restores `state`, processes the batches in turn, and commits each before the next.

    `operator_of` plans the detector on its events, which have a watermark if there is a `lateness`. The batch with the
    number `killed` is processed, but neither it nor a later one is emitted or committed. Raises what the query raises.
    """
    results: list[BatchResult] = []
    with tempfile.TemporaryDirectory() as folder:
        schema = spark.createDataFrame(batches[0].slice(0, 0)).schema
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        parts = [reader.parquet(str(part)) for part in _write(batches, Path(folder), split=lateness is not None)]
        operator = operator_of(canonical_events.watermarked(parts, lateness) if lateness is not None else parts[0])
        operator.load(Stored(partition, key, value) for (partition, key), value in state.items())

        def commit(frame: DataFrame, number: int) -> None:
            result = operator.process(frame.toArrow())
            if killed is None or number < killed:
                results.append(result)
                _commit_state(state, operator)

        query = (
            operator.frame()
            .writeStream.outputMode("append" if lateness is None else "update")
            .foreachBatch(commit)
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    return results


def _commit_state(state: CommittedState, operator: Operator) -> None:
    for record in operator.state_changes():
        key: Any = (record.partition, record.key)
        if record.value is None:
            state.pop(key, None)
        else:
            state[key] = record.value


def _write(batches: Sequence[pa.Table], folder: Path, *, split: bool) -> list[Path]:
    """One file per batch in one folder. With `split`, one such folder for each partition that has events."""
    partitions_of = [[partition for partition, _ in positions(batch)] for batch in batches]
    partitions: list[int | None] = [None]
    if split:
        partitions = [*sorted({partition for batch in partitions_of for partition in batch})] or [0]
    parts = []
    for partition in partitions:
        part = folder / f"partition-{partition}"
        part.mkdir()
        parts.append(part)
        for number, (batch, of) in enumerate(zip(batches, partitions_of, strict=True)):
            own = [partition is None or p == partition for p in of]
            file = part / f"{number:06d}.parquet"
            pq.write_table(batch.filter(pa.array(own, pa.bool_())), file)
            os.utime(file, (number, number))  # Spark reads the oldest first
    return parts
