"""One Kafka transaction per batch: its records and the consumed offsets, all or nothing."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from lozenge.contracts.record import Record
from lozenge.contracts.topics import DEAD_LETTER_BYTES
from lozenge.errors import BrokerUnavailable, Fenced, LozengeError
from lozenge.kafka.group_offsets import ConsumerGroup
from lozenge.kafka.settings import SILENT, KafkaSettings
from lozenge.process.retries import retry
from lozenge.protocol.commit_metadata import CommitMetadata

RETRY_SECONDS = 60.0
"""How long a transaction is tried again while the broker is away, before the job gives up and is restarted."""
TRANSACTION_SECONDS = 30.0
QUEUE_SECONDS = 0.1
"""How long a full queue of a producer waits for the broker, before it is tried again."""
_ATTEMPTS = 20
T = TypeVar("T")
FENCED = {
    KafkaError._FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.PRODUCER_FENCED,
}
"""The errors by which a writer learns that another one was fenced in after it."""


def produce(producer: Producer, record: Record, *, stopped: Callable[[], bool] = lambda: False, **more: Any) -> bool:
    """Hands `record` over, and waits while the producer's queue is full; false if it was `stopped` during that."""
    while True:
        try:
            producer.produce(
                record.topic, record.value, record.key, record.partition, headers=list(record.headers), **more
            )
            return True
        except BufferError:
            producer.poll(QUEUE_SECONDS)
            if stopped():
                return False


def _produce_all(producer: Producer, records: Iterable[Record]) -> None:
    """As `produce` for each. A call of that costs as much as the producer's, so it is made where the queue is full."""
    send = producer.produce
    for record in records:
        topic, partition, key, value, headers = record
        try:
            send(topic, value, key, partition, headers=headers if isinstance(headers, list) else list(headers))
        except BufferError:
            produce(producer, record)


class TransactionalWriter:
    """The one writer of a detector.

    `fence` makes every earlier holder of the same transactional id unable to write: the last caller wins. All records
    of a batch are held in memory, so an aborted transaction is repeated. Records are not compressed: alerts are few,
    and a consumer in any language reads them as they are.
    """

    def __init__(self, kafka: KafkaSettings, transactional_id: str, *, seconds: float = TRANSACTION_SECONDS) -> None:
        """The broker aborts a transaction that is open for so many `seconds`."""
        self._id = transactional_id
        self._bootstrap = kafka.bootstrap
        self._producer = Producer(
            kafka.client(
                transactional_id=transactional_id,
                transaction_timeout_ms=int(seconds * 1000),
                linger_ms=5,
                queue_buffering_max_messages=1_000_000,
                message_max_bytes=DEAD_LETTER_BYTES,
            ),
            logger=SILENT,
        )

    def fence(self) -> None:
        """Claims the transactional id; raises BrokerUnavailable."""
        self._retrying("claiming", lambda: self._producer.init_transactions(15))

    def commit(
        self, records: Sequence[Record], group: ConsumerGroup, offsets: Mapping[int, int], metadata: CommitMetadata
    ) -> None:
        """Writes `records` and moves the group to `offsets`, both or neither.

        Raises Fenced if a newer writer exists, BrokerUnavailable if the broker stayed away.
        """
        positions = [TopicPartition(group.topic, p, o, metadata=metadata.encode()) for p, o in sorted(offsets.items())]
        self._transact(records, lambda: self._producer.send_offsets_to_transaction(positions, group.metadata, 15))

    def write(self, records: Sequence[Record]) -> None:
        """Writes `records`, all or none; raises as `commit` does."""
        self._transact(records, lambda: None)

    def abort_in(self, records: Sequence[Record]) -> None:
        """Writes `records` and aborts, so that their partitions have a marker of this writer. Nobody sees them.

        A transaction of an earlier writer of this id that lacks its marker there is over too. Raises as `commit` does.
        """
        try:
            self._retrying("beginning", self._producer.begin_transaction)
            _produce_all(self._producer, records)
            self._producer.flush(15)
            self._retrying("aborting", lambda: self._producer.abort_transaction(15))
        except KafkaException as error:
            raise self._failed("aborting", error.args[0]) from error

    def _transact(self, records: Sequence[Record], add_offsets: Callable[[], None]) -> None:
        def transact() -> None:
            try:
                self._producer.begin_transaction()
                _produce_all(self._producer, records)
                add_offsets()
                self._retrying("committing", lambda: self._producer.commit_transaction(15))
            except KafkaException as error:
                if not _is_final(error.args[0]):
                    self._retrying("aborting", lambda: self._producer.abort_transaction(15))
                raise

        try:
            self._retry(transact, lambda error: not _is_final(error))
        except KafkaException as error:
            raise self._failed("committing", error.args[0]) from error

    def _retrying(self, doing: str, call: Callable[[], None]) -> None:
        """Repeats `call` itself where that may help; raises KafkaException where the transaction has to be aborted."""
        try:
            self._retry(call, lambda error: error.retriable() and not _is_final(error))
        except KafkaException as error:
            if error.args[0].retriable() or _is_final(error.args[0]):
                raise self._failed(doing, error.args[0]) from error
            raise

    def _retry(self, call: Callable[[], None], on: Callable[[KafkaError], bool]) -> None:
        retry(
            call,
            lambda error: isinstance(error, KafkaException) and on(error.args[0]),
            seconds=RETRY_SECONDS,
            pause=0.2,
        )

    def _failed(self, doing: str, cause: KafkaError) -> LozengeError:
        if cause.code() in FENCED:
            return Fenced(
                f"{doing} a transaction of {self._id}: a newer writer has fenced this one",
                hint="nothing was written; the newer job continues",
            )
        return BrokerUnavailable(
            f"{doing} a transaction of {self._id}: {cause.str()}",
            hint=f"check the broker at {self._bootstrap}; the job continues at its committed offsets",
        )


def exclusively(kafka: KafkaSettings, transactional_id: str, change: Callable[[TransactionalWriter], T]) -> T:
    """Calls `change` with the only writer of this id: it reads what there is, decides, and writes one transaction.

    Of two at once the one that is fenced begins again, on what the other one has left. Raises what `change` raises, and
    BrokerUnavailable.
    """

    def attempt() -> T:
        writer = TransactionalWriter(kafka, transactional_id)
        writer.fence()
        return change(writer)

    return retry(
        attempt,
        lambda error: isinstance(error, Fenced),
        seconds=0,
        attempts=_ATTEMPTS,
        pause=0.1,
        jitter=1.0,  # it keeps two from fencing each other again and again
    )


def _is_final(error: KafkaError) -> bool:
    return error.code() in FENCED or error.fatal()


class AcknowledgedWriter:
    """Writes outside of a transaction, so readers need not wait for one to end. A process writes each record once."""

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
        """Returns once all are acknowledged; raises BrokerUnavailable."""
        self.send(records)
        self.flush()

    def send(self, records: Sequence[Record]) -> None:
        """Returns at once; raises BrokerUnavailable if records sent before were not acknowledged."""
        for record in records:
            produce(self._producer, record, on_delivery=self._delivered)
        self._producer.poll(0)
        self._raise_if_failed()

    def flush(self) -> None:
        """Returns once every sent record is acknowledged; raises BrokerUnavailable."""
        self._producer.flush()
        self._raise_if_failed()

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed.append(error)

    def _raise_if_failed(self) -> None:
        if self._failed:
            raise BrokerUnavailable(
                f"writing alerts: {len(self._failed)} were not acknowledged: {self._failed[0].str()}",
                hint=f"check the broker at {self._bootstrap}; the agent restarts the job",
            )


class PartitionWriters:
    """The writers of one job, each with a transactional id of its own.

    All partitions have one writer, or each has its own, `<app>-<partition>`, where instances share them. So a partition
    can be taken from one instance without harm to the others. Fencing ends an open transaction of its former owner.
    """

    def __init__(self, kafka: KafkaSettings, app: str) -> None:
        self._kafka, self._app = kafka, app
        self._unused = {app: TransactionalWriter(kafka, app)}  # it connects while the caller waits for other things
        self._writers: dict[frozenset[int], TransactionalWriter] = {}

    def fence(self, partitions: Collection[int], *, shared: bool, before: bool) -> None:
        """From now on nobody else writes for `partitions`, whose former owner shared them if `before` says so.

        Raises BrokerUnavailable.
        """
        self._writers = {own: self._fenced(name) for name, own in self._names(partitions, shared).items()}
        if shared != before:
            for name in self._names(partitions, before):
                self._fenced(name)

    @cached_property
    def acknowledged(self) -> AcknowledgedWriter:
        """The writer of records that need no transaction. It has its id half a second after the first use."""
        return AcknowledgedWriter(self._kafka)

    def each(self) -> Iterator[tuple[TransactionalWriter, frozenset[int]]]:
        """Every writer, with the partitions for which it writes."""
        yield from ((writer, own) for own, writer in self._writers.items())

    def _fenced(self, name: str) -> TransactionalWriter:
        writer = self._unused.pop(name, None) or TransactionalWriter(self._kafka, name)
        writer.fence()
        return writer

    def _names(self, partitions: Collection[int], shared: bool) -> dict[str, frozenset[int]]:
        if not shared:
            return {self._app: frozenset(partitions)}
        return {f"{self._app}-{partition}": frozenset([partition]) for partition in partitions}
