"""A topic is read to its end, from its tail, or for the first record of each partition."""

from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from datetime import timedelta
from itertools import islice

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from lozenge.contracts.topics import Topic
from lozenge.job.drivers.window_replay import rewound
from lozenge.kafka import compacted_topic
from lozenge.kafka.compacted_topic import CompactedTopic, FollowedRows, read_latest
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.kafka.topic_reader import TAIL_STEP, bounds, fetch, read, read_log, record_at, tail, times_before
from lozenge.process.waiting import wait_until
from lozenge_deploy.observe.topic_tail import latest

pytestmark = pytest.mark.integration


def test_the_first_record_of_each_partition_is_found_where_there_is_one(kafka: KafkaSettings) -> None:
    topic = "read-the-first"
    ensure_topics(kafka, [Topic(topic, 4)])
    producer = Producer(kafka.client(transactional_id=topic))
    producer.init_transactions()
    producer.begin_transaction()
    for partition, number in ((0, 0), (0, 1), (0, 2), (1, 3), (1, 4)):  # nothing in 2
        producer.produce(topic, str(number).encode(), partition=partition)
    producer.commit_transaction()
    producer.begin_transaction()
    producer.produce(topic, b"taken back", partition=3)
    producer.flush()
    producer.abort_transaction()

    def found(starts: dict[int, int], *, first: bool) -> list[tuple[int | None, bytes | None]]:
        return sorted((m.partition(), m.value()) for m in read(kafka, topic, starts, first=first))

    starts = {0: 1, 1: 0, 2: 0, 3: 0}
    assert found(starts, first=True) == [(0, b"1"), (1, b"3")]
    assert found(starts, first=False) == [(0, b"1"), (0, b"2"), (1, b"3"), (1, b"4")]


def test_the_time_before_an_offset_is_that_of_a_record_also_where_markers_of_transactions_are(
    kafka: KafkaSettings,
) -> None:
    """A new release of an aggregate reads its open windows again from there: a topic at rest ends with a marker."""
    topic = "read-before"
    ensure_topics(kafka, [Topic(topic, 4)])
    producer = Producer(kafka.client(transactional_id=topic))
    producer.init_transactions()
    for partitions in ((0, 1), (0,), (0,)):
        producer.begin_transaction()
        for partition in partitions:
            producer.produce(topic, b"x", partition=partition, timestamp=1_700_000_000_000 + partition)
        producer.commit_transaction()
    for _ in range(15):  # markers without a record between them
        producer.begin_transaction()
        producer.produce(topic, b"taken back", partition=3)
        producer.flush()
        producer.abort_transaction()
    ends = {partition: end for partition, (_, end) in bounds(kafka, topic, 4).items()}
    assert ends[0] == 6, "three records, each with a marker"
    found = times_before(kafka, topic, ends)
    assert found == {0: 1_700_000_000.0, 1: 1_700_000_000.001}
    assert times_before(kafka, topic, {0: 0, 1: 1}) == {1: 1_700_000_000.001}
    span = timedelta(minutes=10)
    assert rewound(kafka, topic, {0: 6, 1: 2, 2: 0}, span) == {0: 0, 1: 0, 2: 0}


def test_the_tail_goes_back_until_it_has_enough_wanted_records(kafka: KafkaSettings) -> None:
    topic = "read-the-tail"
    ensure_topics(kafka, [Topic(topic, 3)])
    producer = Producer(kafka.client())
    producer.produce(topic, b"early", b"wanted", partition=0)
    for number in range(2 * TAIL_STEP):
        producer.produce(topic, str(number).encode(), b"other", partition=0)
    producer.produce(topic, b"late", b"wanted", partition=0)
    producer.produce(topic, b"only", b"wanted", partition=1)  # nothing in 2
    assert producer.flush(30) == 0
    ranges = bounds(kafka, topic, 3)

    def found(count: int, ranges: dict[int, tuple[int, int]]) -> list[tuple[int, bytes]]:
        wanted = tail(kafka, topic, ranges, count, lambda message: message.key() == b"wanted")
        return [(message.partition() or 0, message.value() or b"") for message in wanted]

    assert sorted(found(1, ranges)) == [(0, b"late"), (1, b"only")]
    assert [value for partition, value in found(2, ranges) if partition == 0] == [b"early", b"late"]
    assert found(2, {0: (1, ranges[0][1] - 1)}) == [], "only records of the ranges count"


def test_what_was_deleted_before_the_start_is_passed_over(kafka: KafkaSettings) -> None:
    topic = "read-the-rest"
    ensure_topics(kafka, [Topic(topic, 1)])
    producer = Producer(kafka.client())
    for number in range(4):
        producer.produce(topic, str(number).encode(), str(number).encode(), partition=0)
    assert producer.flush(30) == 0
    admin = AdminClient(kafka.client())  # it has to live until the answer is there
    admin.delete_records([TopicPartition(topic, 0, 2)])[TopicPartition(topic, 0)].result(10)
    assert [message.value() for message in read(kafka, topic, {0: 0})] == [b"2", b"3"]
    assert [stored.key for stored in read_latest(kafka, topic, check=lambda *_: None)] == [b"2", b"3"]
    assert record_at(kafka, topic, 0, 1) is None
    assert record_at(kafka, topic, 0, 4) is None
    found = record_at(kafka, topic, 0, 3)
    assert found is not None
    assert found.value() == b"3"


def test_a_settled_read_has_what_a_transaction_writes_that_was_open_when_it_began(kafka: KafkaSettings) -> None:
    topic = "read-settled"
    ensure_topics(kafka, [Topic(topic, 2)])
    producer = Producer(kafka.client(transactional_id=topic))
    producer.init_transactions()
    for value in (b"before", b"after"):
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce(topic, value, b"key", partition=partition)
        assert producer.flush(30) == 0
        if value == b"before":
            producer.commit_transaction()

    def latest_values(*, settled: bool) -> list[bytes]:
        return [stored.value for stored in read_latest(kafka, topic, (0, 1), check=lambda *_: None, settled=settled)]

    assert latest_values(settled=False) == [b"before", b"before"]
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(latest_values, settled=True)
        # a read that does not wait would end meanwhile, and without the second values
        wait([reading], timeout=1)
        producer.commit_transaction()
        assert reading.result(60) == [b"after", b"after"]


def test_records_are_fetched_in_whatever_order_they_are_named(kafka: KafkaSettings) -> None:
    topic = "fetch-some"
    ensure_topics(kafka, [Topic(topic, 2)])
    producer = Producer(kafka.client())
    for number in range(2_000):
        producer.produce(topic, str(number).encode(), partition=number % 2)
    assert producer.flush(30) == 0
    places = [(0, 0), (0, 1), (0, 5), (1, 7), (1, 8), (0, 6), (0, 999), (0, 3), (1, 9), (1, 9)]
    found = [message.value() for message in fetch(kafka, topic, places)]
    assert found == [str(2 * offset + partition).encode() for partition, offset in places]


def test_a_log_is_read_with_the_entry_whose_transaction_was_about_to_end(kafka: KafkaSettings) -> None:
    topic = "read-a-log"
    ensure_topics(kafka, [Topic(topic, 1)])
    producer = Producer(kafka.client(transactional_id=topic))
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"1", partition=0)
    assert producer.flush(30) == 0
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(read_log, kafka, topic, int)
        # a read that does not wait would end meanwhile, without the entry
        wait([reading], timeout=1)
        producer.commit_transaction()
        assert reading.result(60) == [1]


def test_a_record_is_shown_whatever_its_producer_takes_for_a_timestamp(kafka: KafkaSettings) -> None:
    topic = "read-any-time"
    ensure_topics(kafka, [Topic(topic, 1, {"message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1"})])
    producer = Producer(kafka.client())
    for millis in (1_772_366_400, 1_772_366_400_000, 1_772_366_400_000_000, 1_772_366_400_000_000_000):
        producer.produce(topic, b'{"amount": 1}', b"key", timestamp=millis)
    assert producer.flush(30) == 0
    assert [(row["time"], row["value"]) for row in latest(kafka, topic, 9)] == [
        ("1970-01-21T12:19:26.400+00:00", {"amount": 1}),
        ("2026-03-01T12:00:00.000+00:00", {"amount": 1}),
        ("1772366400000000 ms, in the year 58134", {"amount": 1}),
        ("1772366400000000000 ms, in the year 56166025", {"amount": 1}),
    ]


def test_a_read_ends_where_the_topic_ended_when_it_began(kafka: KafkaSettings) -> None:
    topic = "read-while-it-is-written"
    ensure_topics(kafka, [Topic(topic, 2)])
    producer = Producer(kafka.client())

    def write(partition: int, value: bytes) -> None:
        producer.produce(topic, value, partition=partition)
        assert producer.flush(30) == 0

    for partition in (0, 0, 1):
        write(partition, b"before")
    found = []
    for message in islice(read(kafka, topic, {0: 0, 1: 0}), 100):
        found.append(message.value())
        write(0, b"during")
        write(1, b"during")
    assert found == [b"before"] * 3


def test_a_compacted_topic_that_is_written_all_the_time_has_ends_with_whole_transactions(kafka: KafkaSettings) -> None:
    topic = "followed-while-it-is-written"
    ensure_topics(kafka, [Topic(topic, 1)])
    producer = Producer(kafka.client(transactional_id=topic))
    producer.init_transactions()
    ends = list[tuple[bytes | None, ...]]()

    def write(value: int) -> None:
        """A transaction that is open while the one before it is read."""
        if value:
            producer.commit_transaction()
        producer.begin_transaction()
        for key in (b"a", b"b"):
            producer.produce(topic, str(value).encode(), key)
        producer.flush(30)

    with CompactedTopic(
        kafka, topic, lambda key, value: value, lambda: ends.append((rows.rows.get("a"), rows.rows.get("b")))
    ) as rows:
        for value in range(3):
            write(value)
        written = 3
        for _ in islice(rows.catch_up(), 100):
            write(written)
            written += 1
        assert written < 20, "it caught up with what was there"
        while len(ends) < 5:
            for _ in rows.poll(0.1):
                write(written)
                written += 1
        producer.abort_transaction()
    assert all(a == b for a, b in ends)
    assert len({a for a, _ in ends}) > 2


def test_rows_are_followed_once_their_topic_exists(kafka: KafkaSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    topic, producer = "read-what-comes-later", Producer(kafka.client())
    monkeypatch.setattr(compacted_topic, "NEW_TOPIC_SECONDS", 0.0)

    def write(key: bytes, value: bytes | None) -> None:
        producer.produce(topic, value, key, partition=0)
        assert producer.flush(30) == 0

    with closing(FollowedRows(kafka, topic, lambda key, value: value)) as early:
        assert early.take() == {}
        ensure_topics(kafka, [Topic(topic, 1)])
        write(b"a", b"1")
        assert wait_until(lambda: early.take() == {"a": b"1"}, 30)
        with closing(FollowedRows(kafka, topic, lambda key, value: value)) as late:
            assert late.rows == {"a": b"1"}, "it has read to the end before anybody asks"
        write(b"b", b"2")
        write(b"a", None)
        assert wait_until(lambda: early.take() == {"b": b"2"}, 30)
