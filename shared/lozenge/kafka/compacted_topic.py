"""A compacted topic as a table: the last record of every key.

`read_latest` reads it once, to its present end. `CompactedTopic` follows it, and `FollowedRows` one that may not exist
yet. All readers of compacted topics use these. A record that is no row of its topic is logged and skipped, and the row
of its key stays.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Generic, NamedTuple, Self, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from pydantic import BaseModel

from lozenge.errors import BrokerUnavailable
from lozenge.kafka.row_decoding import row_of
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions as partitions_of
from lozenge.kafka.topic_reader import read

READ_SECONDS = 20.0
LOOK_SECONDS = 2.0
NEW_TOPIC_SECONDS = 10.0
"""How often somebody looks for a topic that there was not: the first request may create it."""
R = TypeVar("R")
M = TypeVar("M", bound=BaseModel)


class Stored(NamedTuple):
    """A live key with its value, in its partition."""

    partition: int
    key: bytes
    value: bytes


def read_latest(
    kafka: KafkaSettings,
    topic: str,
    partitions: Collection[int] = (0,),
    *,
    check: Callable[[bytes, bytes], object],
    wanted: Callable[[bytes], bool] = lambda key: True,
    doing: str = "reading",
    settled: bool = False,
) -> Iterator[Stored]:
    """Every live key of `partitions` that is `wanted`, committed records only; raises BrokerUnavailable.

    `check` raises on the key and value of a record that is no row of this topic.

    Holds all wanted values in memory once. The end it reads to is final if every writer was fenced before. While one
    writes, a `settled` read waits for its open transactions: it has all that was committed before the call.
    """
    latest: dict[int, dict[bytes, bytes]] = {partition: {} for partition in partitions}
    for message in read(kafka, topic, dict.fromkeys(partitions, 0), doing=doing, settled=settled):
        values, key = latest[message.partition() or 0], message.key() or b""
        if (value := message.value()) is None:
            values.pop(key, None)
        elif wanted(key) and row_of(message, lambda key, value: (check(key, value),)) is not None:
            values[key] = value
    for partition, values in latest.items():
        for key, value in values.items():
            yield Stored(partition, key, value)


class CompactedTopic(Generic[R]):
    """Follows a topic of one partition, from its beginning; used by one thread. Committed records only.

    `rows` has the decoded value of every live key, `position` the offset after the last record that was read, and
    `changed` that after the last one that was a row or a deletion.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        topic: str,
        decode: Callable[[bytes, bytes], R],
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        """`decode` makes a row of a key and a value, and raises on any other record.

        `on_end` is called whenever the topic's end is reached, or what was its end at an earlier look: a topic that is
        written all the time is never seen at its end. Then `rows` has all of each transaction or nothing of it, if the
        transactions of the topic never overlap.
        """
        self._topic, self._decode, self._on_end, self._bootstrap = topic, decode, on_end, kafka.bootstrap
        self.rows: dict[str, R] = {}
        self.position = self.changed = 0
        self._caught_up = False
        self._next_end: int | None = None
        """The last stable offset when records came last, until it is reached."""
        self._consumer = Consumer(
            kafka.client(
                group_id="lozenge-compacted",
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                isolation_level="read_committed",
                enable_partition_eof=True,
                fetch_wait_max_ms=50,
            )
        )
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def catch_up(self, timeout: float = READ_SECONDS) -> Iterator[str]:
        """Reads to the topic's end as it is when its first records come; yields the keys that changed.

        Raises BrokerUnavailable if no record comes, and no end is seen, for `timeout` seconds.
        """
        last_read = time.monotonic()
        while not self._caught_up:
            for key in self.poll(0.02):
                last_read = time.monotonic()
                yield key
            if time.monotonic() > last_read + timeout:
                raise self._unanswered(timeout)

    def poll(self, timeout: float) -> Iterator[str]:
        """Reads what comes within `timeout` seconds, at most one batch; yields each key when its row has changed.

        A record that is no row is logged and skipped; the row of its key stays. A broker that is away brings nothing.
        """
        behind = False
        for message in self._consumer.consume(500, timeout):
            error, offset = message.error(), message.offset() or 0
            at_end = error is not None and error.code() == KafkaError._PARTITION_EOF
            if at_end or (error is None and self._next_end is not None and offset >= self._next_end):
                self._caught_up, self._next_end = True, None
                self._on_end()
            behind = not at_end
            if error is not None:
                continue
            self.position = offset + 1
            key = (message.key() or b"").decode(errors="replace")
            if message.value() is None:
                self.rows.pop(key, None)
            elif (row := row_of(message, self._decode)) is not None:
                self.rows[key] = row
            else:
                continue
            self.changed = self.position
            yield key
        if behind and self._next_end is None:
            self._next_end = self._last_stable_offset()

    def close(self) -> None:
        """Closes the connection."""
        self._consumer.close()

    def _last_stable_offset(self) -> int | None:
        """Every transaction below it has ended; None if the broker does not say."""
        try:
            return self._consumer.get_watermark_offsets(TopicPartition(self._topic, 0), timeout=LOOK_SECONDS)[1]
        except KafkaException:
            return None

    def _unanswered(self, seconds: float) -> BrokerUnavailable:
        try:
            self._consumer.list_topics(self._topic, timeout=2)
        except KafkaException as error:
            problem = f"no Kafka broker answers at {self._bootstrap} ({error.args[0].str()})"
        else:
            problem = f"the broker at {self._bootstrap} sent no record and no end for {seconds:.0f} s"
        return BrokerUnavailable(
            f"reading {self._topic}: {problem}",
            hint="`lozenge up` starts one here, or point LOZENGE_KAFKA_BOOTSTRAP at a running broker",
        )


class FollowedRows(Generic[R]):
    """The rows of a topic of one partition that may not exist yet, from its present end on; used by one thread."""

    def __init__(self, kafka: KafkaSettings, topic: str, decode: Callable[[bytes, bytes], R]) -> None:
        """Reads the topic to its present end; raises BrokerUnavailable. `decode` is that of a `CompactedTopic`."""
        self._kafka, self._topic, self._decode = kafka, topic, decode
        self._followed: CompactedTopic[R] | None = None
        self._look_at = 0.0
        self._begin()

    @property
    def rows(self) -> Mapping[str, R]:
        """The row of every live key, as known by now."""
        return self._followed.rows if self._followed is not None else {}

    def take(self) -> Mapping[str, R]:
        """Takes what has come, without waiting, and returns the rows. A broker that is away brings nothing."""
        if self._followed is not None:
            list(self._followed.poll(0.0))
        elif time.monotonic() >= self._look_at:
            with suppress(BrokerUnavailable):
                self._begin()
        return self.rows

    def close(self) -> None:
        """Closes the connection."""
        if self._followed is not None:
            self._followed.close()

    def _begin(self) -> None:
        self._look_at = time.monotonic() + NEW_TOPIC_SECONDS
        if self._topic in partitions_of(self._kafka):
            self._followed = _caught_up(CompactedTopic(self._kafka, self._topic, self._decode))


def json_row(kind: type[M], field: str, key: bytes, value: bytes) -> M:
    """The row in a record, whose `field` equals its key unless that is ""; raises ValueError for any other record."""
    row = kind.model_validate_json(value)
    if field and key.decode() != getattr(row, field):
        raise ValueError(f"its key is {key!r}, its {field} is {getattr(row, field)!r}")
    return row


def follow(kafka: KafkaSettings, topic: str, kind: type[M], key: str = "") -> CompactedTopic[M]:
    """Follows a topic of `kind` as JSON, and has read it to its present end; raises BrokerUnavailable.

    `key` is the field that equals the key of the record; "" if none does.
    """
    return _caught_up(CompactedTopic(kafka, topic, partial(json_row, kind, key)))


def _caught_up(topic: CompactedTopic[R]) -> CompactedTopic[R]:
    """The topic, read to its present end; closed if that fails."""
    try:
        for _ in topic.catch_up():
            pass
    except BaseException:
        topic.close()
        raise
    return topic
