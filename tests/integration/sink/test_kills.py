"""A sink that is killed at each point of a commit loses no record and has none twice, nor a dead letter."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lozenge.archive.verification import totals
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from tests.integration.harness import committed, event, group_offsets, send
from tests.integration.sink.archiving import (
    AT_ONCE,
    declared,
    ends_of,
    proved,
    sharing,
    sink_of,
    spark_reader,
    table_of,
    topics_of,
)
from tests.integration.sink.killed_sink import POINTS

ROOT = Path(__file__).parents[3]
SIGKILLED = -9


@pytest.fixture(scope="module")
def records(kafka: KafkaSettings) -> int:
    """How many events there are, of several cards, next to a few records that are none."""
    ensure_topics(kafka, kafka.topics.platform_topics())
    for number in range(0, 400, 100):
        send(kafka, [event(n, card=f"card_{n % 17}") for n in range(number, number + 100)])
        send(kafka, [b"no event"])
    return 400


@pytest.mark.parametrize("point", POINTS)
def test_a_restart_after_a_kill_loses_and_doubles_nothing(
    kafka: KafkaSettings, spark: SparkSession, records: int, tmp_path: Path, point: str
) -> None:
    sink = declared(f"killed_{list(POINTS).index(point)}")
    command = [sys.executable, "-m", "tests.integration.sink.killed_sink", sink.name, str(tmp_path), point]
    killed = subprocess.run(command, cwd=ROOT, env={**os.environ, **kafka.variables}, capture_output=True, text=True)
    assert killed.returncode == SIGKILLED, killed.stderr
    topic = topics_of(kafka, sink)["events_auth"]
    archived = table_of(topic, sink, tmp_path).ends(range(topic.partitions))
    done = ends_of(kafka, topic)
    table_is_done = archived == {p: end for p, end in done.items() if end}
    assert table_is_done == (list(POINTS).index(point) > 1), archived
    with sharing(kafka, sink, spark_reader(spark, kafka, sink)) as shared:
        resumed = sink_of(topic, sink, tmp_path, shared)
        assert (resumed.commit(done, AT_ONCE) is None) == table_is_done
    sums = totals(found := proved(kafka, tmp_path))
    assert all(each.clean for each in found)
    assert (sums["rows"], sums["dead_letters"]) == (records, 4)
    assert len(committed(kafka, kafka.topics.dead_letters(sink.app))) == 4
    assert {p: o for p, (o, _) in group_offsets(kafka, sink.app, topic.topic).items() if o} == {
        p: end for p, end in done.items() if end
    }


def test_files_of_a_killed_sink_are_nobodys_and_are_deleted_later(
    kafka: KafkaSettings, records: int, tmp_path: Path
) -> None:
    sink, point = declared("leftover"), "between the files and the commit of the table"
    command = [sys.executable, "-m", "tests.integration.sink.killed_sink", sink.name, str(tmp_path), point]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **kafka.variables}, check=False, capture_output=True)
    table = table_of(topics_of(kafka, sink)["events_auth"], sink, tmp_path)
    written = {str(file.relative_to(table.folder)) for file in table.folder.rglob("*.parquet")}
    assert {file.path for file in table.files()} < written
