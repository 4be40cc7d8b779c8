"""The three guarantees, which differ in one thing: when the alerts of a batch are written.

State, dead letters, coverage and offsets go into one transaction under each of them. So each has the same fence, and
what a detector remembers is exact also where its alerts may be repeated or lost.
"""

from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import KafkaError, Message, Producer

from lozenge.errors import BrokerUnavailable
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.writers import RETRY_SECONDS, Record, produce

Write = Callable[[Sequence[Record]], None]


def exactly_once(alerts: Sequence[Record], others: Sequence[Record], transact: Write, tell: Write) -> None:
    """Alerts within the transaction: who reads committed records sees each of them once, when it has ended."""
    transact([*alerts, *others])


def at_least_once(alerts: Sequence[Record], others: Sequence[Record], transact: Write, tell: Write) -> None:
    """Alerts before the transaction: a crash in between tells those of one batch again, under equal ids.

    A job that was replaced while it slept may do the same: it tells what it has judged, and then learns of it.
    """
    tell(alerts)
    transact(others)


def at_most_once(alerts: Sequence[Record], others: Sequence[Record], transact: Write, tell: Write) -> None:
    """Alerts behind the transaction: a crash in between loses those of one batch, and none is ever repeated.

    A job that was replaced while it slept tells nothing: its transaction is refused.
    """
    transact(others)
    tell(alerts)


WAYS: Mapping[str, Callable[[Sequence[Record], Sequence[Record], Write, Write], None]] = {
    "exactly-once": exactly_once,
    "at-least-once": at_least_once,
    "at-most-once": at_most_once,
}
"""How a batch with its alerts and other records ends, by guarantee."""


class AcknowledgedWriter:
    """Writes outside of any transaction, so that no reader waits for an end; in one process each record comes once."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._bootstrap = kafka.bootstrap
        self._failed: list[KafkaError] = []
        self._producer = Producer(
            kafka.client(
                enable_idempotence=True,
                message_timeout_ms=int(RETRY_SECONDS * 1000),
                delivery_report_only_error=True,
                linger_ms=0,
                queue_buffering_max_messages=1_000_000,
            )
        )

    def write(self, records: Sequence[Record]) -> None:
        """Returns once all are acknowledged; raises BrokerUnavailable if the broker stayed away."""
        self.send(records)
        self.flush()

    def send(self, records: Sequence[Record]) -> None:
        """Returns at once; raises BrokerUnavailable if the broker stayed away from what was sent before."""
        for record in records:
            produce(self._producer, record, on_delivery=self._delivered)
        self._producer.poll(0)
        self._raise_if_failed()

    def flush(self) -> None:
        """Returns once all that was sent is acknowledged; raises BrokerUnavailable if the broker stayed away."""
        self._producer.flush()
        self._raise_if_failed()

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed.append(error)

    def _raise_if_failed(self) -> None:
        if self._failed:
            raise BrokerUnavailable(
                f"writing alerts: {len(self._failed)} were not acknowledged: {self._failed[0].str()}",
                hint=f"check the broker at {self._bootstrap}; the agent starts the job again",
            )
