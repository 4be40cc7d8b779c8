"""How far upstream has come: the offsets of its consumer group, the only truth about it."""

import json
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from lozenge.errors import BrokerUnavailable
from lozenge.kafka import KafkaSettings

Offsets = dict[str, dict[str, int]]
"""The next offset to read, by topic and partition, in the form that Spark writes and takes."""

EARLIEST = -2
"""Spark's word for the first record that Kafka still has."""

_CALL_SECONDS = 10.0
_DEADLINE_SECONDS = 30.0


class Position:
    """The committed offsets of `group`. It never joins the group, so it can commit from any thread."""

    def __init__(self, kafka: KafkaSettings, group: str) -> None:
        self._bootstrap = kafka.bootstrap
        self._consumer = Consumer(kafka.client(group_id=group, enable_auto_commit=False))
        self._done: dict[tuple[str, int], int] = {}

    def read(self, topics: dict[str, int]) -> Offsets:
        """Where to go on in each topic of so many partitions; `EARLIEST` where nothing was committed."""
        asked = [TopicPartition(topic, number) for topic, count in topics.items() for number in range(count)]
        committed = self._patiently(
            "reading committed offsets", lambda: self._consumer.committed(asked, timeout=_CALL_SECONDS)
        )
        offsets: Offsets = {topic: {} for topic in topics}
        for at in committed:
            offsets[at.topic][str(at.partition)] = at.offset if at.offset >= 0 else EARLIEST
            self._done[at.topic, at.partition] = max(at.offset, 0)
        return offsets

    def commit(self, offsets: Offsets) -> None:
        """Makes `offsets` the group's position and returns when the broker has it."""
        asked = [TopicPartition(t, int(number), at) for t, ends in offsets.items() for number, at in ends.items()]
        self._patiently("committing offsets", lambda: self._consumer.commit(offsets=asked, asynchronous=False))
        self._done |= {(at.topic, at.partition): at.offset for at in asked}

    def lag(self) -> int:
        """Raw records that were written and not yet committed here; raises BrokerUnavailable."""
        total = 0
        for (topic, number), done in list(self._done.items()):
            ends = partial(self._consumer.get_watermark_offsets, TopicPartition(topic, number), _CALL_SECONDS)
            low, high = self._patiently("reading the ends of the raw topics", ends)
            total += max(0, high - max(low, done))
        return total

    def _patiently(self, doing: str, call: Callable[[], Any]) -> Any:
        """`call`, repeated while the broker is away or the group's coordinator is still to be found."""
        deadline = time.monotonic() + _DEADLINE_SECONDS
        while True:
            try:
                return call()
            except KafkaException as error:
                if time.monotonic() > deadline:
                    raise BrokerUnavailable(
                        f"{doing} at {self._bootstrap}: {error.args[0].str()}", hint="check the broker"
                    ) from error
                time.sleep(0.2)

    def close(self) -> None:
        """Releases the connection."""
        self._consumer.close()


def ends_of(checkpoint: Path, batch: int) -> Offsets:
    """The end offsets of one batch, from the plan that Spark writes before it runs the batch."""
    _version, _metadata, *sources = (checkpoint / "offsets" / str(batch)).read_text("utf-8").splitlines()
    return merged(json.loads(source) for source in sources if source != "-")


def merged(parts: Iterable[Offsets]) -> Offsets:
    """The offsets of several sources, which share no topic, as one."""
    return {topic: ends for part in parts for topic, ends in part.items()}
