"""The relay publishes the outbox in order and marks it; here without a broker."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from lozenge.apps import DOWNSTREAM
from lozenge.contracts.dead_letters import TRUNCATED
from lozenge.contracts.topics import Topics
from lozenge.errors import Fatal
from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.app_metrics import NotifierMetrics
from lozenge_downstream.delivery import outbox_relay
from lozenge_downstream.delivery.outbox_relay import SEQ, OutboxRelay, seq_of
from lozenge_downstream.model import Outgoing, ReceivedRecord
from tests.downstream.conftest import Desk

TOPICS = Topics()
DEAD_LETTERS = TOPICS.dead_letters(DOWNSTREAM)
MakeRecord = Callable[..., ReceivedRecord]


@dataclass
class Published:
    """A record in Kafka, as confluent-kafka shows it."""

    at: tuple[str, int]
    content: bytes | None
    named: list[tuple[str, Any]] = field(default_factory=list)

    def topic(self) -> str:
        return self.at[0]

    def partition(self) -> int:
        return self.at[1]

    def offset(self) -> int:
        return 0

    def value(self) -> bytes | None:
        return self.content

    def headers(self) -> list[tuple[str, Any]]:
        return self.named


class ScriptedProducer:
    """Keeps what is committed, each transaction by itself; refuses a value above `largest` bytes."""

    def __init__(self) -> None:
        self.transactions: list[list[Published]] = []
        self.largest, self.together = 10_000_000, 1_000
        self.aborted = 0
        self._open: list[Published] = []

    def begin_transaction(self) -> None:
        self._open = []

    def produce(self, topic: str, value: bytes | None, key: bytes | None, partition: int, headers: Any) -> None:
        self._open.append(Published((topic, partition), value, headers))

    def commit_transaction(self) -> None:
        too_large = any(len(record.content or b"") > self.largest for record in self._open)
        if too_large or len(self._open) > self.together:
            raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
        self.transactions.append(self._open)

    def abort_transaction(self, seconds: float) -> None:
        self.aborted += 1


class Relaying:
    """A relay of a desk, and the topics that it writes."""

    def __init__(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        self.desk, self.producer, self.metrics = desk, ScriptedProducer(), NotifierMetrics("test")
        self.last: list[Published] = []
        kafka = KafkaSettings(bootstrap="127.0.0.1:1")
        self.may, self.fences = True, 0
        self.relay = OutboxRelay(kafka, desk.store, self.metrics, lambda: self.may)
        monkeypatch.setattr(outbox_relay, "POLL_SECONDS", 0.01)
        monkeypatch.setattr(outbox_relay, "RETRY_SECONDS", 0.01)
        monkeypatch.setattr(self.relay, "_producer", self._fence)
        monkeypatch.setattr(self.relay, "_last_published", self._tail)

    def _fence(self) -> ScriptedProducer:
        """A new producer fences that of every other notifier."""
        self.fences += 1
        return self.producer

    def _tail(self) -> Iterator[Published]:
        yield from self.last

    def run(self) -> None:
        """Runs the relay until nothing is pending, or until it ends by itself."""
        stop = threading.Event()
        raised: list[BaseException] = []

        def run() -> None:
            try:
                self.relay.run(stop)
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        for _ in range(500):
            if raised or not self.pending():
                break
            thread.join(0.01)
        stop.set()
        self.relay.wake()
        thread.join(10)
        assert not thread.is_alive()
        if raised:
            raise raised[0]

    def pending(self) -> Sequence[Outgoing]:
        with self.desk.store.reading() as t:
            return t.outbox.pending(1000)

    def seqs(self) -> list[list[int | None]]:
        """The numbers in each transaction."""
        return [[seq_of(record) for record in records] for records in self.producer.transactions]  # type: ignore[arg-type]


@pytest.fixture
def relaying(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Relaying:
    return Relaying(desk, monkeypatch)


def dead_letter(desk: Desk, value: bytes) -> None:
    """Puts a dead letter into the outbox."""
    with desk.store.transaction(exclusive=True) as t:
        seq = t.outbox.number(DEAD_LETTERS, 0)
        t.outbox.send([Outgoing(DEAD_LETTERS, 0, seq, f"d{seq}", b"k", value, [("why", b"x")])])


def test_what_is_pending_is_published_in_order_and_marked(relaying: Relaying, record: MakeRecord) -> None:
    relaying.desk.take(*(record(number) for number in range(3)))
    relaying.run()
    [records] = relaying.producer.transactions
    assert [seq_of(each) for each in records] == [0, 1, 2]  # type: ignore[arg-type]
    assert {each.topic() for each in records} == {TOPICS.notifications}
    assert relaying.pending() == []
    assert relaying.metrics.snapshot()["samples"]["lozenge_emitted_total"] == 3


def test_a_notifier_that_may_not_publish_fences_nobody(relaying: Relaying, record: MakeRecord) -> None:
    relaying.desk.take(record())
    relaying.may = False
    stop = threading.Event()
    thread = threading.Thread(target=relaying.relay.run, args=[stop])
    thread.start()
    thread.join(0.2)
    stop.set()
    thread.join(10)
    assert (relaying.fences, relaying.producer.transactions) == (0, [])
    assert len(relaying.pending()) == 1


def test_what_an_earlier_relay_published_and_could_not_mark_is_not_published_again(
    relaying: Relaying, record: MakeRecord
) -> None:
    relaying.desk.take(*(record(number) for number in range(3)))
    second = relaying.pending()[1]
    relaying.last = [Published((second.topic, second.partition), second.value, [(SEQ, b"1")])]
    relaying.run()
    assert relaying.seqs() == [[2]]
    assert relaying.pending() == []


@pytest.mark.parametrize(("seq", "value"), [(0, b"of another store"), (7, b"ahead of this store")])
def test_a_topic_that_was_written_from_another_store_is_refused(
    relaying: Relaying, record: MakeRecord, seq: int, value: bytes
) -> None:
    relaying.desk.take(record())
    [row] = relaying.pending()
    relaying.last = [Published((row.topic, row.partition), value, [(SEQ, str(seq).encode())])]
    with pytest.raises(Fatal, match="was not written from the store"):
        relaying.run()
    assert relaying.producer.transactions == []


def test_a_batch_that_is_too_large_is_published_one_by_one(relaying: Relaying, record: MakeRecord) -> None:
    relaying.desk.take(*(record(number) for number in range(3)))
    relaying.producer.together = 1
    relaying.run()
    assert relaying.seqs() == [[0], [1], [2]]
    assert relaying.producer.aborted == 1


def test_a_dead_letter_that_is_too_large_is_truncated_and_keeps_its_number(relaying: Relaying) -> None:
    dead_letter(relaying.desk, b"x" * 200_000)
    dead_letter(relaying.desk, b"small")
    relaying.producer.largest = 100_000
    relaying.run()
    published = [each for records in relaying.producer.transactions for each in records]
    assert [seq_of(each) for each in published] == [0, 1]  # type: ignore[arg-type]
    assert len(published[0].value() or b"") < 100_000
    assert TRUNCATED in dict(published[0].headers())
    assert published[1].value() == b"small"


def test_a_record_that_is_too_large_and_no_dead_letter_stays(relaying: Relaying, record: MakeRecord) -> None:
    relaying.desk.take(record())
    relaying.producer.largest = 1
    with pytest.raises(KafkaException):
        relaying.relay._publish(relaying.producer)  # type: ignore[arg-type]
    assert len(relaying.pending()) == 1


@pytest.mark.parametrize(
    ("headers", "seq"),
    [
        ([(SEQ, b"12")], 12),
        ([], None),
        ([(SEQ, None)], None),
        ([(SEQ, b"-1")], None),
        ([(SEQ, b"1" * 20)], None),
        ([(SEQ, b"many")], None),
    ],
)
def test_the_number_of_a_record_is_that_of_its_header_if_it_is_one(headers: list[Any], seq: int | None) -> None:
    assert seq_of(Published(("t", 0), b"", headers)) == seq  # type: ignore[arg-type]
