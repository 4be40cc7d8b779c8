"""The log lines of one app, from the topic with those of all apps."""

import json
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Message, TopicPartition

from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.topics import LOG_PARTITIONS
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import bounds, reader, tail
from lozenge_deploy.observe.record_view import decoded, time_of

_RANKS = {"debug": 1, "info": 2, "warning": 3, "error": 4, "critical": 5}

Line = dict[str, Any]


class LogReader:
    """The lines of `app` of at least `level`, each with the keys of `lozenge.process.logging`."""

    def __init__(self, kafka: KafkaSettings, app: str, level: str = "debug") -> None:
        self._kafka, self._app, self._level = kafka, app.encode(), level
        self._partition = partition_of(self._app, LOG_PARTITIONS)

    def latest(self, count: int) -> tuple[list[Line], int]:
        """The newest `count` lines, oldest first, and the next offset; raises BrokerUnavailable."""
        topic = self._kafka.topics.logs
        low, end = bounds(self._kafka, topic, LOG_PARTITIONS)[self._partition]
        found = tail(self._kafka, topic, {self._partition: (low, end)}, count, lambda m: bool(list(self._ours(m))))
        return [line for message in found for line in self._ours(message)], end

    def following(self, start: int) -> Iterator[Line]:
        """Every line from offset `start` on, endlessly; raises BrokerUnavailable."""
        with reader(self._kafka, self._kafka.topics.logs) as consumer:
            consumer.assign([TopicPartition(self._kafka.topics.logs, self._partition, start)])
            while True:
                for message in consumer.consume(1000, 0.2):
                    if message.error() is None:  # an error is the end of the partition, or a broker that will return
                        yield from self._ours(message)

    def _ours(self, message: Message) -> Iterator[Line]:
        if message.key() == self._app:
            line = _line_of(message)
            if _rank(line.get("level")) >= _rank(self._level):
                yield line


def _line_of(message: Message) -> Line:
    """The fields of a line; a record that is no line of ours is the event of one."""
    found = decoded(message.value())
    if isinstance(found, dict):
        return found
    event = found if isinstance(found, str) else json.dumps(found)
    return {"time": time_of(message), "level": "info", "event": event}


def _rank(level: object) -> int:
    """The severity of a level; an unknown one counts as info."""
    return _RANKS.get(str(level).lower(), _RANKS["info"])
