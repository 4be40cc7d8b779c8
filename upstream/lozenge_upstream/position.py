"""How far upstream has come: the offsets of its consumer group, the only truth about it."""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from lozenge.errors import BrokerUnavailable
from lozenge.kafka import KafkaSettings

Offsets = dict[str, dict[str, int]]
"""The next offset to read, by topic and partition, in the form that Spark writes and takes."""

_CALL_SECONDS = 10.0
_DEADLINE_SECONDS, _TRIES = 30.0, 3
"""How long, and how often at least: a process that stood still has waited for nobody."""


class Position:
    """Reads the committed offsets of `group`, which it never joins."""

    def __init__(self, kafka: KafkaSettings, group: str) -> None:
        self._bootstrap = kafka.bootstrap
        self._consumer = Consumer(kafka.client(group_id=group, enable_auto_commit=False))
        self._done: dict[tuple[str, int], int] = {}

    def read(self, places: Mapping[str, Iterable[int]]) -> Offsets:
        """Where to go on in each partition of each topic: its earliest record where nothing was committed.

        Waits for an open transaction of the group to end. Raises BrokerUnavailable.
        """
        asked = [TopicPartition(topic, number) for topic, numbers in places.items() for number in numbers]
        committed = self._patiently(
            "reading committed offsets", lambda: self._consumer.committed(asked, timeout=_CALL_SECONDS)
        )
        self._done = {
            (at.topic, at.partition): at.offset if at.offset >= 0 else self._bounds(at.topic, at.partition)[0]
            for at in committed
        }
        offsets: Offsets = {topic: {} for topic in places}
        for (topic, number), at in self._done.items():
            offsets[topic][str(number)] = at
        return offsets

    def ahead(self, offsets: Offsets) -> int:
        """How many offsets lie between the group's position and `offsets`."""
        return sum(at - self._done[t, int(number)] for t, ends in offsets.items() for number, at in ends.items())

    def reached(self, offsets: Offsets) -> None:
        """Notes that `offsets` are the group's position now."""
        self._done |= {(topic, int(number)): at for topic, ends in offsets.items() for number, at in ends.items()}

    def lag(self) -> int:
        """Raw records that were written and not yet committed here; raises BrokerUnavailable."""
        total = 0
        for (topic, number), done in list(self._done.items()):
            low, high = self._bounds(topic, number)
            total += max(0, high - max(low, done))
        return total

    def _bounds(self, topic: str, number: int) -> tuple[int, int]:
        ask = partial(self._consumer.get_watermark_offsets, TopicPartition(topic, number), _CALL_SECONDS)
        found: tuple[int, int] = self._patiently("reading the ends of the raw topics", ask)
        return found

    def _patiently(self, doing: str, call: Callable[[], Any]) -> Any:
        """`call`, repeated while the broker is away or the group's coordinator is still to be found."""
        deadline = time.monotonic() + _DEADLINE_SECONDS
        tried = 0
        while True:
            try:
                return call()
            except KafkaException as error:
                tried += 1
                if time.monotonic() > deadline and tried >= _TRIES:
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
