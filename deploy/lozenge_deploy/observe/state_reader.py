"""The state of one entity, from the compacted state topic of a detector."""

from collections.abc import Iterator
from typing import Any

import msgspec

from lozenge.contracts.display_text import shown_data
from lozenge.detector.fold import Entry
from lozenge.errors import UsageError
from lozenge.kafka.compacted_topic import read_latest
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge_deploy.observe.record_view import decoded, text

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
    for stored in read_latest(
        kafka,
        topic,
        range(count),
        check=_shown,
        wanted=lambda key: entity in map(str, parts_of(key, card_numbers=True)),
    ):
        yield entry_of(stored.key, stored.value)


def _shown(key: bytes, value: bytes) -> None:
    """Accepts any record: a view shows what is there."""


def parts_of(key: bytes, *, card_numbers: bool = False) -> list[Any]:
    """The values that the key of an entry consists of; a key that no detector writes is one text."""
    found = decoded(key, card_numbers=card_numbers) if key[:1] == b"[" else None
    return found if isinstance(found, list) else [text(key, card_numbers=card_numbers)]


def entry_of(key: bytes, value: bytes) -> dict[str, Any]:
    """An entry as data; of one that no detector writes the value as it is."""
    if key[:1] != b"[":
        return {"key": parts_of(key), "closes": text(value)}
    try:
        entry = _ENTRY.decode(value)
    except (ValueError, RecursionError):
        return {"key": parts_of(key), "unreadable": decoded(value)}
    return {
        "key": parts_of(key),
        "clock": entry.clock.isoformat(),
        "timers": [at.isoformat() for at in entry.timers],
        "state": shown_data(entry.state),
    }
