"""A compacted topic of one partition as a table: the last record of every key."""

import time
from collections.abc import Iterator
from types import TracebackType
from typing import Generic, Self, TypeVar

from confluent_kafka import Consumer, KafkaError, TopicPartition
from pydantic import BaseModel, ValidationError

from lozenge.errors import BrokerUnavailable
from lozenge.kafka.settings import KafkaSettings
from lozenge.process.logging import logger

READ_SECONDS = 20.0
R = TypeVar("R", bound=BaseModel)


class Table(Generic[R]):
    """Follows `topic`, whose values are `kind` as JSON; used by one thread. Committed records only.

    `position` is the offset behind the last record that was taken in. Raises BrokerUnavailable if the topic's present
    end cannot be reached at the beginning; after that a broker that is away only means that nothing new comes.
    """

    def __init__(self, kafka: KafkaSettings, topic: str, kind: type[R]) -> None:
        self._kind = kind
        self.rows: dict[str, R] = {}
        self.position = 0
        self._at_end = False
        self._consumer = Consumer(
            kafka.client(
                group_id="lozenge-control",
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                isolation_level="read_committed",
                enable_partition_eof=True,
                fetch_wait_max_ms=50,
            )
        )
        self._consumer.assign([TopicPartition(topic, 0, 0)])
        deadline = time.monotonic() + READ_SECONDS
        while not self._at_end:
            if time.monotonic() > deadline:
                self.close()
                raise BrokerUnavailable(f"reading {topic}", hint=f"check the broker at {kafka.bootstrap}")
            list(self.poll(0.1))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def poll(self, timeout: float) -> Iterator[str]:
        """Takes in what comes within `timeout` seconds, at most one batch; yields the keys that changed.

        A record that cannot be read is logged, and its key stays as it was.
        """
        for message in self._consumer.consume(500, timeout):
            error = message.error()
            if error is not None:
                self._at_end = self._at_end or error.code() == KafkaError._PARTITION_EOF
                continue
            self.position = (message.offset() or 0) + 1
            key, value = (message.key() or b"").decode(), message.value()
            try:
                if value is None:
                    self.rows.pop(key, None)
                else:
                    self.rows[key] = self._kind.model_validate_json(value)
            except ValidationError as problem:
                logger().error(f"reading {key} in {message.topic()}: {problem}", offset=message.offset())
                continue
            yield key

    def close(self) -> None:
        """Gives the connection back."""
        self._consumer.close()
