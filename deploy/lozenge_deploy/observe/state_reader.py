"""What a detector remembers of one entity, out of its compacted state topic."""

from collections.abc import Iterator
from typing import Any

import msgspec

from lozenge.detector.fold import Entry
from lozenge.errors import UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.topic_reader import read

_ENTRY = msgspec.json.Decoder(Entry[Any])


def remembered(kafka: KafkaSettings, detector: str, entity: str) -> Iterator[dict[str, Any]]:
    """Every committed entry with `entity` among the values of its key, as data that prints as JSON.

    Of a fold: key, state, clock and timers. Of an aggregate, whose keys are alert ids: when the window of that
    alert closes. Reads the whole topic and holds what it finds. Raises UsageError for a detector that has
    none, BrokerUnavailable.
    """
    topic = kafka.topics.state(detector)
    if (count := partitions(kafka).get(topic)) is None:
        raise UsageError(
            f"looking into the state of {detector}: there is no topic {topic}",
            hint="`lozenge status` lists what runs",
        )
    found: dict[bytes, bytes] = {}
    for message in read(kafka, topic, dict.fromkeys(range(count), 0)):
        key, value = message.key() or b"", message.value()
        if value is None:
            found.pop(key, None)
        elif entity in _parts(key):
            found[key] = value
    for key, value in found.items():
        yield _told(key, value)


def _parts(key: bytes) -> list[str]:
    """The values that a key is made of, as a person would write them."""
    if key[:1] != b"[":
        return [key.decode()]
    return [str(part) for part in msgspec.json.decode(key)]


def _told(key: bytes, value: bytes) -> dict[str, Any]:
    if key[:1] != b"[":
        return {"key": _parts(key), "closes": value.decode()}
    entry = _ENTRY.decode(value)
    return {
        "key": msgspec.json.decode(key),
        "clock": entry.clock.isoformat(),
        "timers": [at.isoformat() for at in entry.timers],
        "state": entry.state,
    }
