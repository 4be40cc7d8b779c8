"""What a topic holds, as one background consumer of its committed records sees it.

A test that polls a topic asks the probe, which has read each record once, instead of reading the topic again.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from lozenge.kafka.settings import KafkaSettings
from tests.integration.clients import ends, settled_ends

DEADLINE_SECONDS = 180.0
POLL_SECONDS = 0.05
FATAL = (KafkaError._AUTO_OFFSET_RESET, KafkaError._FATAL, KafkaError.TOPIC_AUTHORIZATION_FAILED)
"""Errors after which a probe would miss records. It survives all others: the broker may be restarting."""


class Record(NamedTuple):
    """A committed record; `timestamp` is in milliseconds."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: Any
    value: Any
    headers: list[tuple[str, bytes]]

    @classmethod
    def of(cls, message: Message) -> "Record":
        """The record in a message of librdkafka."""
        given: Any = message
        return cls(
            given.topic(),
            given.partition(),
            given.offset(),
            given.timestamp()[1],
            given.key(),
            given.value(),
            given.headers() or [],
        )


class Activity:
    """Counts what all probes have found, and wakes the threads that wait for more."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.count = 0

    def add(self) -> None:
        """Notes that a probe has found records."""
        with self._changed:
            self.count += 1
            self._changed.notify_all()

    def wait_beyond(self, count: int, seconds: float) -> None:
        """Returns when there is more than `count`, and after `seconds` at the latest."""
        with self._changed:
            self._changed.wait_for(lambda: self.count > count, seconds)


ACTIVITY = Activity()


class TopicProbe:
    """Reads a topic in the background, from `starts` (offset by partition) or its beginning."""

    def __init__(self, kafka: KafkaSettings, topic: str, starts: Mapping[int, int] | None = None) -> None:
        self._kafka, self._topic = kafka, topic
        self._changed = threading.Condition()
        self._records: list[Record] = []
        self._decoded: dict[Callable[[bytes], Any], list[Any]] = {}
        self._failure: KafkaError | None = None
        self._closing = threading.Event()
        # records that were trimmed from the beginning are not missed, those behind a start that was requested are
        self._reset = "earliest" if starts is None else "error"
        self._positions = dict(starts) if starts is not None else dict.fromkeys(ends(kafka, topic), 0)
        self._thread = threading.Thread(target=self._run, name=f"probe of {topic}", daemon=True)
        self._thread.start()

    def read_to_end(self) -> list[Record]:
        """Every record that was committed before this call, once the probe has read them all."""
        wanted = settled_ends(self._kafka, self._topic)
        return self.wait(lambda _: all(self._positions[p] >= end for p, end in wanted.items()), f"the end {wanted}")

    def decoded(self, decode: Callable[[bytes], Any]) -> list[Any]:
        """The values of `read_to_end`; each record is decoded once."""
        records = self.read_to_end()
        done = self._decoded.setdefault(decode, [])
        done += [decode(record.value) for record in records[len(done) :]]
        return list(done)

    def wait(self, condition: Callable[[list[Record]], object], what: str) -> list[Record]:
        """The records read so far, as soon as `condition` holds for them."""
        with self._changed:
            held = self._changed.wait_for(lambda: self._failure or condition(self._records), DEADLINE_SECONDS)
            if self._failure is not None:
                raise KafkaException(self._failure)
            assert held, f"{self._topic} at {self._positions}: waited {DEADLINE_SECONDS:.0f} s for {what}"
            return list(self._records)

    def close(self) -> None:
        """Makes it end soon; `join` waits for that."""
        self._closing.set()

    def join(self) -> None:
        """Waits until its connections are closed."""
        self._thread.join()

    def _run(self) -> None:
        consumer = Consumer(
            self._kafka.client(
                group_id="test-probe",
                enable_auto_commit=False,
                isolation_level="read_committed",
                enable_partition_eof=True,
                auto_offset_reset=self._reset,
                fetch_queue_backoff_ms=10,
                fetch_wait_max_ms=50,  # a partition whose start is found late waits for the fetch of the others
            )
        )
        starts = self._positions.items()
        consumer.assign([TopicPartition(self._topic, p, start or OFFSET_BEGINNING) for p, start in starts])
        while not self._closing.is_set():
            if (first := consumer.poll(POLL_SECONDS)) is not None:
                self._take([first, *consumer.consume(10_000, 0)])
        consumer.close()

    def _take(self, messages: list[Message]) -> None:
        with self._changed:
            for message in messages:
                partition: Any = message.partition()
                offset: Any = message.offset()
                if (error := message.error()) is None:
                    self._records.append(Record.of(message))
                    self._positions[partition] = offset + 1
                elif error.code() == KafkaError._PARTITION_EOF:  # also behind what is no record, as a commit marker
                    self._positions[partition] = max(self._positions[partition], offset)
                elif error.code() in FATAL:
                    self._failure = error
            self._changed.notify_all()
        ACTIVITY.add()


_PROBES: dict[tuple[object, ...], TopicProbe] = {}
_LOCK = threading.Lock()


def probe(kafka: KafkaSettings, topic: str, starts: Mapping[int, int] | None = None) -> TopicProbe:
    """The one probe of `topic` from there on; it begins with the first call."""
    key = (kafka.bootstrap, topic, None if starts is None else tuple(sorted(starts.items())))
    with _LOCK:
        if key not in _PROBES:
            _PROBES[key] = TopicProbe(kafka, topic, starts)
        return _PROBES[key]


def close_probes() -> None:
    """Ends all probes, as at the end of a test."""
    with _LOCK:
        for each in _PROBES.values():
            each.close()
        for each in _PROBES.values():
            each.join()
        _PROBES.clear()
