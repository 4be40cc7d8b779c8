"""How far upstream has come: the offsets of its consumer group, the only truth about it."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from confluent_kafka import TopicPartition

from lozenge.contracts.record import Partition
from lozenge.kafka.group_offsets import Committed
from lozenge.kafka.settings import KafkaSettings

_REALTIME = "realtime/"
Offsets = dict[str, dict[str, int]]
"""The next offset to read, by topic and partition, in the form that Spark writes and takes."""


def mark(moment: datetime) -> str:
    """The metadata of offsets behind which records may have been written, from `moment` on."""
    return f"{_REALTIME}{moment.isoformat()}"


def _moment_of(metadata: str | None) -> datetime | None:
    name, _, moment = (metadata or "").rstrip("\0").partition("/")
    return datetime.fromisoformat(moment) if f"{name}/" == _REALTIME else None


class Position:
    """Reads the committed offsets of `group`, which it never joins.

    What comes behind its offsets may have been written already, but not before `written_since`; None if it was not.
    """

    def __init__(self, kafka: KafkaSettings, group: str) -> None:
        self._committed = Committed(kafka, group)
        self._done: dict[Partition, int] = {}
        self.written_since: datetime | None = None

    def read(self, places: Mapping[str, Iterable[int]]) -> Offsets:
        """Where to go on in each partition of each topic: its earliest record where nothing was committed.

        Waits for an open transaction of the group to end. Raises BrokerUnavailable.
        """
        asked = [TopicPartition(topic, number) for topic, numbers in places.items() for number in numbers]
        found = self._committed.read(asked)
        self._done = {
            (at.topic, at.partition): at.offset if at.offset >= 0 else self._committed.bounds(at)[0] for at in found
        }
        moments = [moment for at in found if (moment := _moment_of(at.metadata)) is not None]
        self.written_since = min(moments, default=None)
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

    @property
    def places(self) -> Mapping[Partition, int]:
        """The group's position, by topic and partition."""
        return self._done

    def ends(self) -> dict[Partition, int] | None:
        """The ends of its partitions as they are now; None while the broker does not answer at once."""
        return self._committed.ends(self._done)

    def lag(self) -> int:
        """Raw records that were written and not yet committed here; raises BrokerUnavailable."""
        total = 0
        for (topic, number), done in list(self._done.items()):
            low, high = self._committed.bounds(TopicPartition(topic, number))
            total += max(0, high - max(low, done))
        return total

    def close(self) -> None:
        """Releases the connection."""
        self._committed.close()


def ends_of(checkpoint: Path, batch: int) -> Offsets:
    """The end offsets of one batch, from the plan that Spark writes before it runs the batch."""
    _version, _metadata, *sources = (checkpoint / "offsets" / str(batch)).read_text("utf-8").splitlines()
    return merged(json.loads(source) for source in sources if source != "-")


def merged(parts: Iterable[Offsets]) -> Offsets:
    """The offsets of several sources, which share no topic, as one."""
    return {topic: ends for part in parts for topic, ends in part.items()}
