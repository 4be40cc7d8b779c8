"""Reading a topic from given offsets, or from a moment on, to its present end."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TypeVar

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from lozenge.errors import BrokerUnavailable, TopicError
from lozenge.kafka.row_decoding import row_of
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions

T = TypeVar("T")
CALL_SECONDS = 10.0
TAIL_STEP = 1_000
STEP_BACK = 10
"""By so much further each look for an earlier record goes back than the one before."""
FETCH_SECONDS = 15.0
FETCH_AHEAD = 500
"""So many records are read and passed over; beyond that a consumer is assigned again."""
SILENCE_SECONDS = 600.0
"""After this long without a record before the end, the broker counts as lost."""


def read(
    kafka: KafkaSettings,
    topic: str,
    starts: Mapping[int, int],
    *,
    first: bool = False,
    doing: str = "reading",
    isolation: str = "read_committed",
    settled: bool = False,
) -> Iterator[Message]:
    """Every record from `starts` (offset by partition) to the end, or the `first` one of each partition.

    The end is that of the moment when the read begins, so a topic that is written all the time has one. For a committed
    read it is where the first open transaction of a partition begins. That may be one which was committed, since the
    broker writes the markers of its end into one partition after the other. A `settled` read waits for the
    transactions that are open when it begins, so it has all that was committed before. Raises BrokerUnavailable.
    """
    ends = _bounds(kafka, topic, starts, "read_uncommitted") if settled else {}
    with reader(kafka, topic, doing=doing, isolation=isolation) as consumer:
        consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in starts.items()])
        ends = ends or _watermarks(consumer, topic, starts)
        unread = {partition for partition, start in starts.items() if start != ends[partition][1]}
        deadline = time.monotonic() + SILENCE_SECONDS
        while unread:
            if time.monotonic() > deadline:
                raise BrokerUnavailable(
                    f"{doing} {topic}: no record in {SILENCE_SECONDS:.0f} s",
                    hint=f"check the broker at {kafka.bootstrap}",
                )
            for message in consumer.consume(10_000, 0.05):
                error, partition = message.error(), message.partition() or 0
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                if partition not in unread:
                    continue
                at_end = (message.offset() or 0) >= ends[partition][1]
                if error is None and not at_end:
                    yield message
                    deadline = time.monotonic() + SILENCE_SECONDS
                if at_end or (first and error is None) or (error is not None and not settled):
                    unread.discard(partition)


def read_log(kafka: KafkaSettings, topic: str, kind: type[T], begin: int = 0) -> list[T]:
    """Every entry of a log in one partition from offset `begin` on, the oldest first; none if there is no such topic.

    The read is settled: a process finds what it has committed itself. Entries are `kind` as JSON; any other record is
    logged and skipped. Raises BrokerUnavailable.
    """
    if topic not in partitions(kafka):
        return []
    decoder = msgspec.json.Decoder(kind)
    found = retained(kafka, topic, 1, begin, settled=True)
    rows = (row_of(message, lambda _, value: decoder.decode(value)) for message in found)
    return [row for row in rows if row is not None]


def retained(
    kafka: KafkaSettings, topic: str, count: int, begin: int = 0, *, settled: bool = False
) -> Iterator[Message]:
    """Every committed record that `topic` still has, in each partition from offset `begin` on.

    `settled` as in `read`. Raises BrokerUnavailable.
    """
    starts = {p: max(begin, earliest) for p, (earliest, _) in bounds(kafka, topic, count).items()}
    yield from read(kafka, topic, starts, settled=settled)


def bounds(kafka: KafkaSettings, topic: str, count: int) -> dict[int, tuple[int, int]]:
    """The earliest offset and the end of each partition; raises BrokerUnavailable."""
    return _bounds(kafka, topic, range(count), "read_committed")


def open_transactions(kafka: KafkaSettings, topic: str, asked: Iterable[int]) -> set[int]:
    """The partitions with a transaction that is open now; raises BrokerUnavailable."""
    asked = [*asked]
    stable = _bounds(kafka, topic, asked, "read_committed")
    return {p for p, (_, end) in _bounds(kafka, topic, asked, "read_uncommitted").items() if stable[p][1] < end}


def _bounds(kafka: KafkaSettings, topic: str, asked: Iterable[int], isolation: str) -> dict[int, tuple[int, int]]:
    with reader(kafka, topic, isolation=isolation) as consumer:
        return _watermarks(consumer, topic, asked)


def _watermarks(consumer: Consumer, topic: str, asked: Iterable[int]) -> dict[int, tuple[int, int]]:
    """Of each partition, its earliest offset and its end by the consumer's isolation."""
    return {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=CALL_SECONDS) for p in asked}


def offsets_at(kafka: KafkaSettings, topic: str, count: int, moment: datetime) -> dict[int, int]:
    """The first offset of each partition that was written at `moment` or later, else its end."""
    with reader(kafka, topic) as consumer:
        asked = [TopicPartition(topic, partition, max(0, int(moment.timestamp() * 1000))) for partition in range(count)]
        found = consumer.offsets_for_times(asked, timeout=CALL_SECONDS)
        ends = {p.partition: consumer.get_watermark_offsets(p, timeout=CALL_SECONDS)[1] for p in found if p.offset < 0}
        return {p.partition: ends.get(p.partition, p.offset) for p in found}


def read_since(kafka: KafkaSettings, topic: str, count: int, moment: datetime) -> Iterator[Message]:
    """Every committed record that was written at `moment` or later, and some after it; raises BrokerUnavailable."""
    yield from read(kafka, topic, offsets_at(kafka, topic, count, moment))


def ranges_since(kafka: KafkaSettings, topic: str, count: int, moment: datetime) -> dict[int, tuple[int, int]]:
    """The offsets from `moment` to the present end, of each partition that has any; raises BrokerUnavailable."""
    starts = offsets_at(kafka, topic, count, moment)
    ends = bounds(kafka, topic, count)
    return {p: (start, ends[p][1]) for p, start in starts.items() if start < ends[p][1]}


def write_times(
    kafka: KafkaSettings,
    topic: str,
    offsets: Mapping[int, int],
    *,
    doing: str = "reading",
    isolation: str = "read_committed",
) -> dict[int, float]:
    """By partition, the Unix time of the first record at its offset or after it; none where there is none.

    Raises BrokerUnavailable.
    """
    found = read(kafka, topic, offsets, first=True, doing=doing, isolation=isolation)
    return {message.partition() or 0: message.timestamp()[1] / 1000 for message in found}


def times_before(
    kafka: KafkaSettings, topic: str, offsets: Mapping[int, int], *, doing: str = "reading"
) -> dict[int, float]:
    """By partition, the Unix time of one of the latest records before its offset; none where there is none.

    What is just before it may be no record but the marker of a transaction, with nothing behind it in a topic at rest.
    Raises BrokerUnavailable.
    """
    found, step, unknown = dict[int, float](), 1, dict(offsets)
    while unknown:
        starts = {p: max(0, offset - step) for p, offset in unknown.items()}
        for message in read(kafka, topic, starts, first=True, doing=doing):
            partition = message.partition() or 0
            if (message.offset() or 0) < unknown[partition]:
                found[partition] = message.timestamp()[1] / 1000
        unknown = {p: offset for p, offset in unknown.items() if p not in found and starts[p] > 0}
        step *= STEP_BACK
    return found


def record_at(kafka: KafkaSettings, topic: str, partition: int, offset: int) -> Message | None:
    """The committed record at this position, if it is retained; raises BrokerUnavailable."""
    found = read(kafka, topic, {partition: offset}, first=True)
    return next((message for message in found if message.offset() == offset), None)


def tail(
    kafka: KafkaSettings,
    topic: str,
    ranges: Mapping[int, tuple[int, int]],
    count: int,
    wanted: Callable[[Message], bool] = lambda message: True,
    *,
    step: int = TAIL_STEP,
) -> list[Message]:
    """The newest `count` committed records that are `wanted` of each partition, the oldest of a partition first.

    Only records of the `ranges` of offsets count. It begins `step` offsets before the end: few of large records.
    Raises BrokerUnavailable.
    """
    found: list[Message] = []
    step = max(2 * count, step)
    # Transaction markers and unwanted records take offsets too: step back further where too few records are found.
    while ranges:
        starts = {partition: max(low, end - step) for partition, (low, end) in ranges.items()}
        last: dict[int, deque[Message]] = {partition: deque(maxlen=count) for partition in ranges}
        for message in read(kafka, topic, starts):
            partition = message.partition() or 0
            if (message.offset() or 0) < ranges[partition][1] and wanted(message):
                last[partition].append(message)
        done = {p for p, messages in last.items() if len(messages) == count or starts[p] == ranges[p][0]}
        found += [message for partition in sorted(done) for message in last[partition]]
        ranges = {partition: bounds for partition, bounds in ranges.items() if partition not in done}
        step *= 4
    return found


def fetch(kafka: KafkaSettings, topic: str, positions: Iterable[tuple[int, int]]) -> Iterator[Message]:
    """The records at `positions`, byte for byte; raises TopicError if one is gone.

    Positions in the order of a partition are read on; a jump costs some 20 ms.
    """
    consumer = Consumer(kafka.client(group_id="lozenge-fetch", enable_auto_commit=False))
    following: tuple[int, int] | None = None
    try:
        for partition, offset in positions:
            if following is None or following[0] != partition or not 0 <= offset - following[1] <= FETCH_AHEAD:
                consumer.assign([TopicPartition(topic, partition, offset)])
            yield _record_at(consumer, topic, partition, offset)
            following = partition, offset + 1
    finally:
        consumer.close()


@contextmanager
def reader(
    kafka: KafkaSettings, topic: str, *, doing: str = "reading", isolation: str = "read_committed"
) -> Iterator[Consumer]:
    """A consumer, by default of committed records, that reports partition ends.

    Raises Kafka's errors as BrokerUnavailable.
    """
    consumer = Consumer(
        kafka.client(
            group_id="lozenge-reading",
            enable_auto_commit=False,
            isolation_level=isolation,
            auto_offset_reset="earliest",  # where retention has deleted the start, the rest is read
            enable_partition_eof=True,
            fetch_queue_backoff_ms=10,  # the usual second is spent waiting, again and again, with nothing to do
            fetch_wait_max_ms=20,  # and at the end the usual half second, for records that need not come
        )
    )
    try:
        yield consumer
    except KafkaException as error:
        raise BrokerUnavailable(
            f"{doing} {topic}: {error.args[0].str()}",
            hint=f"check the broker at {kafka.bootstrap}, or point LOZENGE_KAFKA_BOOTSTRAP at a running one",
        ) from error
    finally:
        consumer.close()


def _record_at(consumer: Consumer, topic: str, partition: int, offset: int) -> Message:
    deadline = time.monotonic() + FETCH_SECONDS
    while time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if (
            message is not None
            and message.error() is None
            and (message.partition(), message.offset())
            == (
                partition,
                offset,
            )
        ):
            return message
    raise TopicError(
        f"fetching {topic} {partition}:{offset} for its dead letter: no such record",
        hint="the topic's retention may be shorter than the detector's lag",
    )
