"""Rows of Parquet files into a topic: what a row costs, next to a plain loop and a Spark batch job.

`make bench-pytest ARGS="-k file_source"` copies `LOZENGE_FILE_ROWS` rows (800,000) in eight files by each in turn,
`LOZENGE_FILE_ROUNDS` times (3), and prints processor time and rows a second. Ours commits each 10,000 rows with their
position; the loop (pyarrow, json, confluent-kafka) and Spark (`to_json`, its Kafka sink) write at least once.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from lozenge.contracts.topics import Topic
from lozenge.file_sources.definition import FileSource
from lozenge.file_sources.topics import topics_of
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.kafka.writers import AcknowledgedWriter
from lozenge.protocol.file_positions import FileState
from lozenge.protocol.source_requests import SOURCES, SourceRelease, SourceRequest
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from lozenge_deploy.operations.file_sources.requests import positions_of
from tests.bench.harness.workload import Task
from tests.streams import every_topic

ROWS = int(os.environ.get("LOZENGE_FILE_ROWS", "800000"))
ROUNDS = int(os.environ.get("LOZENGE_FILE_ROUNDS", "3"))
FILES, PARTITIONS = 8, 4

LOOP = """
import json, sys, glob
import pyarrow.parquet as pq
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": sys.argv[1], "linger.ms": 5, "queue.buffering.max.messages": 1000000})
for file in sorted(glob.glob(sys.argv[3] + "/*.parquet")):
    for batch in pq.ParquetFile(file).iter_batches(10000):
        for row in batch.to_pylist():
            while True:
                try:
                    producer.produce(sys.argv[2], json.dumps(row).encode(), row["pan"].encode())
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.poll(0)
producer.flush()
"""
SPARK = """
import sys
from pyspark.sql import functions as F
from lozenge.kafka.settings import KafkaSettings
from lozenge.spark.session import spark_session
spark = spark_session("files", cores=2, memory_mb=1024)
rows = spark.read.parquet(sys.argv[3]).select(F.col("pan").alias("key"), F.to_json(F.struct("*")).alias("value"))
options = {"kafka.bootstrap.servers": sys.argv[1], "topic": sys.argv[2]}
rows.write.format("kafka").options(**options).save()
"""


def test_what_a_row_of_a_file_costs(tmp_path: Path) -> None:
    files = tmp_path / "in"
    files.mkdir()
    _write(files)
    with EmbeddedBroker(tmp_path / "broker", heap_mb=512) as broker:
        kafka = KafkaSettings(bootstrap=broker.bootstrap)
        ensure_topics(kafka, every_topic(kafka.topics))
        ways: dict[str, Callable[[str], subprocess.Popen[bytes]]] = {
            "file source": lambda topic: _source(kafka, topic, files),
            "loop": lambda topic: _program(LOOP, kafka, topic, files),
            "Spark": lambda topic: _program(SPARK, kafka, topic, files),
        }
        found: dict[str, list[float]] = {way: [] for way in ways}
        for round_ in range(ROUNDS):
            for way, start in ways.items():
                topic = f"bench_{way.replace(' ', '_').lower()}_{round_}"
                ensure_topics(kafka, [Topic(topic, PARTITIONS)])
                cpu, seconds = _measured(kafka, topic, start(topic), way == "file source")
                found[way].append(ROWS / cpu)
                print(f"{way}: {ROWS / cpu:,.0f} rows a core second, {ROWS / seconds:,.0f} a second", flush=True)
        median = {way: statistics.median(values) for way, values in found.items()}
        ours = median["file source"]
        print({way: f"{ours / theirs:.2f} of it" for way, theirs in median.items()}, flush=True)


def _measured(
    kafka: KafkaSettings, topic: str, process: subprocess.Popen[bytes], is_source: bool
) -> tuple[float, float]:
    """Processor seconds of the process and all below it, and seconds, until all rows are written."""
    began, used = time.monotonic(), dict[int, float]()
    while process.poll() is None and not (is_source and _is_done(kafka, topic)):
        _take_usage(process.pid, used)
        time.sleep(0.2)
    seconds = time.monotonic() - began
    _take_usage(process.pid, used)
    process.terminate()
    assert process.wait() in (0, -15)
    return sum(used.values()), seconds


def _is_done(kafka: KafkaSettings, topic: str) -> bool:
    return [position.state for position in positions_of(kafka, topic)] == [FileState.DONE] * FILES


def _take_usage(pid: int, used: dict[int, float]) -> None:
    with suppress(psutil.Error):
        parent = psutil.Process(pid)
        for each in (parent, *parent.children(recursive=True)):
            with suppress(psutil.Error):
                times = each.cpu_times()
                used[each.pid] = times.user + times.system


def _write(folder: Path) -> None:
    task, now, each = Task("normalise", every=1, keys=100_000), time.time_ns(), ROWS // FILES
    for file in range(FILES):
        rows = [task.raw(n, now + n * 1_000_000) for n in range(file * each, (file + 1) * each)]
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{file}.parquet", row_group_size=20_000)


def _source(kafka: KafkaSettings, topic: str, files: Path) -> subprocess.Popen[bytes]:
    [first, *_] = sorted(files.iterdir())
    columns = {field.name: str(field.type) for field in pq.read_schema(first)}
    declared = {"title": topic, "owner": "bench", "path": str(files), "format": "parquet", "key": "pan"}
    source = FileSource.model_validate(
        {**declared, "name": topic, "topic": topic, "columns": columns, "complete": "rename"}
    )
    ensure_topics(kafka, topics_of(kafka.topics, topic))
    rows = (SourceRelease(topic, 1, source.model_dump(mode="json")), SourceRequest(topic, 1))
    AcknowledgedWriter(kafka).write([SOURCES.record(kafka.topics.control.sources, row) for row in rows])
    environment = {**os.environ, **kafka.variables, "LOZENGE_FILES_SOURCE": topic}
    return subprocess.Popen([sys.executable, "-m", "lozenge_upstream.files"], env=environment)


def _program(text: str, kafka: KafkaSettings, topic: str, files: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", text, kafka.bootstrap, topic, str(files)])
