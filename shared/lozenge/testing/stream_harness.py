"""A detector as a real streaming query: one file per batch, and a dictionary in the place of its state topic."""

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
from lozenge.testing.events import positions

Memory = dict[tuple[int, bytes], bytes]
"""What is committed of a job's state: the value of every live key, by partition and key."""


def stream(
    spark: SparkSession,
    batches: Sequence[pa.Table],
    lateness: timedelta | None,
    hosted: Callable[[DataFrame], Operator],
    memory: Memory,
    *,
    lost: int | None = None,
) -> list[BatchResult]:
    """One life of a job: it begins with `memory`, judges the batches in turn, and commits each before the next.

    `hosted` plans the detector on its events, which have a watermark if there is a `lateness`. The batch with the
    number `lost` is judged, but neither told nor committed, nor is any after it. Raises what the query raises.
    """
    judgements: list[BatchResult] = []
    with tempfile.TemporaryDirectory() as folder:
        schema = spark.createDataFrame(batches[0].slice(0, 0)).schema
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        parts = [reader.parquet(str(part)) for part in _write(batches, Path(folder), apart=lateness is not None)]
        host = hosted(canonical_events.watermarked(parts, lateness) if lateness is not None else parts[0])
        host.load((partition, key, value) for (partition, key), value in memory.items())

        def commit(frame: DataFrame, number: int) -> None:
            judged = host.process(frame.toArrow())
            if lost is None or number < lost:
                judgements.append(judged)
                _remember(memory, host)

        query = (
            host.frame()
            .writeStream.outputMode("append" if lateness is None else "update")
            .foreachBatch(commit)
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    return judgements


def _remember(memory: Memory, host: Operator) -> None:
    for record in host.state_changes():
        key: Any = (record.partition, record.key)
        if record.value is None:
            memory.pop(key, None)
        else:
            memory[key] = record.value


def _write(batches: Sequence[pa.Table], folder: Path, *, apart: bool) -> list[Path]:
    """One file per batch, all of equal numbers; with `apart` so in a folder for each partition that has events."""
    where = [[partition for partition, _ in positions(batch)] for batch in batches]
    partitions: list[int | None] = [None]
    if apart:
        partitions = [*sorted({partition for batch in where for partition in batch})] or [0]
    parts = []
    for partition in partitions:
        part = folder / f"partition-{partition}"
        part.mkdir()
        parts.append(part)
        for number, (batch, of) in enumerate(zip(batches, where, strict=True)):
            mine = [partition is None or p == partition for p in of]
            file = part / f"{number:06d}.parquet"
            pq.write_table(batch.filter(pa.array(mine, pa.bool_())), file)
            os.utime(file, (number, number))  # Spark reads the oldest first
    return parts
