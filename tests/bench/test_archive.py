"""The archive compared with a plain loop: rows per processor second from a topic into committed files.

Both read the same backlog. The plain loop is the consumer, the decoder and the Arrow table that anybody would write,
with the same files and commits. The broker's seconds are not counted. `make bench-pytest ARGS="-k archive"`.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from lozenge.archive.archived_topics import ArchivedTopic, archived_topics
from lozenge.archive.columns import rows_of
from lozenge.archive.delta_table import ArchiveTable
from lozenge.archive.queries import ArchiveQueries
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.topic_reader import bounds
from lozenge.process.usage import Meter
from lozenge.sink.decoded_batch import Ranges, RecordReader
from lozenge.sink.spark_reader import SparkReader
from lozenge.sink_declarations.archive_sink import ArchiveSink
from tests.plain_loop import PlainLoop
from tests.streams import AUTH

SINK = ArchiveSink(name="bench", kind="archive", title="Bench", owner="tests")
ROWS, PASSES, WARM_UP = 100_000, 9, 4
"""Rows of a commit, about 64 MB; commits; and how many of them are not counted, because Java still compiles."""


def archived(
    topic: ArchivedTopic, records: RecordReader, folder: Path, ranges: Sequence[Ranges]
) -> tuple[float, float]:
    """Rows per processor second, and the seconds of a commit, after the warm-up."""
    table = ArchiveTable.open(folder, topic.topic, topic.view, topic.columns, SINK.buckets)
    meter, ends = Meter(psutil.Process()), dict[int, int]()
    counted, began, wall = 0, 0.0, 0.0
    for number, part in enumerate(ranges):
        if number == WARM_UP:
            began, wall = meter.read().cpu_seconds, time.monotonic()
        rows = rows_of(records.read(topic, part, SINK.buckets).rows, topic.columns)
        moved = {p: end for p, (_, end) in part.items()}
        table.append(rows, ends, moved)
        ends |= moved
        counted += len(rows) if number >= WARM_UP else 0
    return counted / (meter.read().cpu_seconds - began), (time.monotonic() - wall) / (len(ranges) - WARM_UP)


@pytest.mark.parametrize("who", ["spark", "plain loop"])
def test_rows_per_processor_second(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path, who: str, capsys: pytest.CaptureFixture[str]
) -> None:
    [topic] = archived_topics(
        SINK, kafka.topics, [AUTH], {AUTH.events(kafka.topics): partitions(kafka)[AUTH.events(kafka.topics)]}
    )
    readers: dict[str, Callable[[], RecordReader]] = {
        "spark": lambda: SparkReader(spark, kafka, SINK.app),
        "plain loop": lambda: PlainLoop(kafka),
    }
    limits = bounds(kafka, topic.topic, topic.partitions)
    step = ROWS // topic.partitions
    ranges = [{p: (low + n * step, low + (n + 1) * step) for p, (low, _) in limits.items()} for n in range(PASSES)]
    assert all(end <= limits[p][1] for p, (_, end) in ranges[-1].items()), "the backlog is too short"
    rate, seconds = archived(topic, readers[who](), tmp_path, ranges)
    table = ArchiveTable.existing(tmp_path)
    size = sum(file.size for file in table.files()) / sum(file.rows for file in table.files())
    began = time.monotonic()
    with ArchiveQueries([table]) as queries:
        [card] = (
            queries.read("SELECT any_value(card_id) AS id, any_value(bucket) AS b FROM events").read_all().to_pylist()
        )
        began = time.monotonic()
        query = f"SELECT count(*) FROM events WHERE bucket = {card['b']} AND card_id = '{card['id']}'"
        queries.read(query).read_all()
        asked = time.monotonic() - began
    with capsys.disabled():
        print(
            f"\n{who}: {rate:,.0f} rows per processor second, {seconds:.1f} s a commit of {ROWS:,} rows, "
            f"{size:.0f} bytes a row in files; the rows of one card in {1000 * asked:.0f} ms"
        )
