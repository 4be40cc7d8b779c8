"""What the output topics contain says which raw records were written ahead of the group's offsets."""

from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession

from lozenge.contracts.dead_letters import RAW_POSITION
from lozenge_upstream.streaming.recovery_read import recovery_read
from tests.integration.clients import clients
from tests.integration.harness import EVENT, event
from tests.integration.upstream.upstream_bench import Bench
from tests.streams import RAW_JSON, output


def test_each_output_partition_says_up_to_which_raw_offset_it_has_records(
    bench: Bench, upstream_spark: SparkSession
) -> None:
    raw, topics = bench.topics.prefixed(RAW_JSON), bench.topics
    earlier = datetime.now(UTC) - timedelta(hours=1)

    producer = clients(bench.kafka).producer

    def write(topic: str, partition: int, raw_partition: int, offset: int, at: datetime) -> None:
        origin = {"source": "auth_json", "topic": raw, "partition": raw_partition, "offset": offset, "timestamp": at}
        value = EVENT.encode(event(offset, raw=origin))
        producer.produce(topic, value, b"key", partition, timestamp=_millis(at))

    def write_dead_letter(partition: int, position: str, at: datetime) -> None:
        headers: Any = [("other", b"x"), (RAW_POSITION, position.encode())]
        producer.produce(bench.dead, None, b"key", partition, headers=headers, timestamp=_millis(at))

    since = datetime.now(UTC)
    write(topics.events("auth"), 0, raw_partition=0, offset=99, at=earlier)  # before: by then all was committed
    for offset in (3, 4):
        write(topics.events("auth"), 0, raw_partition=0, offset=offset, at=since)
    write(topics.events("auth"), 0, raw_partition=2, offset=8, at=since)
    write(topics.events("auth"), 1, raw_partition=0, offset=5, at=since)
    write(bench.by_terminal, 3, raw_partition=0, offset=3, at=since)
    write_dead_letter(1, f"{raw}/1/6", at=since)
    assert producer.flush(30) == 0

    written = recovery_read(upstream_spark, bench.kafka, since, output(bench.kafka, "terminal"))
    assert written.until == {(raw, 0): 6, (raw, 1): 7, (raw, 2): 9}
    places = [
        *((topics.events("auth"), 0, 0, offset) for offset in (4, 5)),
        *((topics.events("auth"), 1, 0, offset) for offset in (5, 6)),
        (topics.events("auth"), 0, 2, 8),
        (topics.events("auth"), 2, 0, 0),
        *((bench.by_terminal, 3, 0, offset) for offset in (3, 4)),
        *((bench.dead, 1, 1, offset) for offset in (6, 7)),
    ]
    columns = "topic string, partition int, raw struct<partition: int, offset: bigint>"
    rows = upstream_spark.createDataFrame([(topic, to, (of, at)) for topic, to, of, at in places], columns)
    left = {(r["topic"], r["partition"], *r["raw"]) for r in written.skip_written(rows, raw).collect()}
    assert left == {
        (topics.events("auth"), 0, 0, 5),
        (topics.events("auth"), 1, 0, 6),
        (topics.events("auth"), 2, 0, 0),
        (bench.by_terminal, 3, 0, 4),
        (bench.dead, 1, 1, 7),
    }


def test_no_record_since_then_means_that_nothing_was_written_ahead(bench: Bench, upstream_spark: SparkSession) -> None:
    assert (
        recovery_read(
            upstream_spark, bench.kafka, datetime.now(UTC) + timedelta(hours=1), output(bench.kafka, "terminal")
        ).until
        == {}
    )


def _millis(moment: datetime) -> int:
    return int(moment.timestamp() * 1000) + 1  # a record of this very millisecond comes after the moment
