"""The state of one entity, from the compacted state topic of a detector."""

from collections.abc import Iterator
from typing import Any

import msgspec

from lozenge.detector.fold import Entry
from lozenge.errors import UsageError
from lozenge.kafka.compacted_topic import read_latest
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions

_ENTRY = msgspec.json.Decoder(Entry[Any])


def state_of(kafka: KafkaSettings, detector: str, entity: str) -> Iterator[dict[str, Any]]:
    """Every committed entry with `entity` among the values of its key, as data that prints as JSON.

    Of a fold: key, state, clock and timers. Of an aggregate, whose keys are alert ids: when the window of that
    alert closes. Reads the whole topic and holds what it finds. Raises UsageError for a detector that has
    none, BrokerUnavailable.
    """
    topic = kafka.topics.detector(detector).state
    if (count := partitions(kafka).get(topic)) is None:
        raise UsageError(
            f"reading the state of {detector}: there is no topic {topic}",
            hint="`lozenge status` lists the apps",
        )
    for stored in read_latest(kafka, topic, range(count), wanted=lambda key: entity in _parts(key)):
        yield _entry(stored.key, stored.value)


def _parts(key: bytes) -> list[str]:
    """The values that a key consists of, as text."""
    if key[:1] != b"[":
        return [key.decode()]
    return [str(part) for part in msgspec.json.decode(key)]


def _entry(key: bytes, value: bytes) -> dict[str, Any]:
    if key[:1] != b"[":
        return {"key": _parts(key), "closes": value.decode()}
    entry = _ENTRY.decode(value)
    return {
        "key": msgspec.json.decode(key),
        "clock": entry.clock.isoformat(),
        "timers": [at.isoformat() for at in entry.timers],
        "state": entry.state,
    }
