"""What the server of a cache has of a key, and whether it has exactly the latest record of each key."""

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from lozenge.cache.cached_topic import CachedTopic
from lozenge.cache.comparison import CacheComparison, CacheProof
from lozenge.cache.entries import CachePosition, CacheReader, Lifetimes, StoredEntry
from lozenge.errors import DecodeError, LozengeError, TopicError
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions, topic_id
from lozenge.kafka.topic_reader import bounds, read
from lozenge.near_names import near_hint

Progress = Callable[[int, int], None]
"""Called now and then with how many offsets were read, of how many."""
_STEP = 10_000
_PAGE = 1_000


def entry_of(reader: CacheReader, name: str, key: str) -> StoredEntry:
    """The entry that the cache `name` has for a key; raises LozengeError if it has none that counts."""
    found, doing = reader.entry(key), f"looking for {key!r} in the cache {name}"
    if found is None:
        if not reader.positions():
            raise nothing_of(doing, name)
        raise LozengeError(
            f"{doing}: there is no such key",
            hint="it has no record yet, or its entry has expired, or the key is another: a key is as its topic has it, "
            f"and several values of a fold are joined by |. `lozenge cache verify {name}` compares all keys",
        )
    place = f"{found.partition}:{found.offset}"
    if found.value is None:
        raise LozengeError(f"{doing}: the record at {place} has deleted it", hint="it returns with its next record")
    if found.expires_at is not None and found.expires_at <= _now():
        raise LozengeError(
            f"{doing}: its entry, of the record at {place}, has expired", hint="it returns with its next record"
        )
    return found


def verified(
    kafka: KafkaSettings, name: str, topic: CachedTopic, reader: CacheReader, lifetimes: Lifetimes, progress: Progress
) -> CacheProof:
    """Compares every key of a topic with the cache `name`, at the positions that the server has.

    Raises LozengeError if it has none, if one is of another topic, or if the server loses something meanwhile;
    TopicError, BrokerUnavailable, CacheUnavailable, ConfigError.
    """
    doing = f"verifying the cache {name}"
    positions = reader.positions()
    if not positions:
        raise nothing_of(doing, name)
    existing = partitions(kafka)
    if topic.name not in existing:
        platform = "name the platform of this cache by LOZENGE_KAFKA_BOOTSTRAP"
        raise TopicError(
            f"{doing}: there is no topic {topic.name} at {kafka.bootstrap}",
            hint="; ".join(filter(None, (platform, near_hint(topic.name, existing)))),
        )
    limits = bounds(kafka, topic.name, existing[topic.name])
    _require_one_topic(doing, positions, topic_id(kafka, topic.name), limits)
    earliest = {partition: low for partition, (low, _) in limits.items()}
    comparison = CacheComparison(positions, earliest, lifetimes)
    total, done = sum(max(0, each.offset - earliest[p]) for p, each in positions.items()), 0
    for partition, position in sorted(positions.items()):
        for read_since in _take(comparison, kafka, topic, partition, (earliest[partition], position.offset)):
            progress(done + read_since, total)
        done += max(0, position.offset - earliest[partition])
    progress(total, total)
    stored = reader.entries()
    while page := list(islice(stored, _PAGE)):
        comparison.take_stored(page, _now())
    _require_no_loss(doing, positions, reader.positions())
    return comparison.proof(_now())


def entry_fields(found: StoredEntry, value: Any) -> dict[str, Any]:
    """An entry with its decoded `value`; times and durations in seconds."""
    now = _now()
    return {
        "key": found.key,
        "value": value,
        "partition": found.partition,
        "offset": found.offset,
        "epoch": found.epoch,
        "at": found.at / 1000,
        "age_seconds": round((now - found.at) / 1000, 3),
        "expires_in_seconds": round((found.expires_at - now) / 1000, 3) if found.expires_at is not None else None,
    }


def nothing_of(doing: str, name: str) -> LozengeError:
    """That a server has nothing of a cache."""
    return LozengeError(
        f"{doing}: its server has nothing of this cache",
        hint=f"`lozenge up --sink {name}` starts it, and `lozenge status sink-{name}` shows how far it is",
    )


def _take(
    comparison: CacheComparison, kafka: KafkaSettings, topic: CachedTopic, partition: int, span: tuple[int, int]
) -> Iterator[int]:
    """Takes the records of one partition; yields now and then how many offsets were read."""
    start, end = span
    if start >= end:
        return
    for number, message in enumerate(read(kafka, topic.name, {partition: start}, doing="verifying"), 1):
        offset = message.offset() or 0
        try:
            entry = topic.entry(message.key(), message.value(), offset, message.timestamp()[1])
        except DecodeError:  # a dead letter of the sink: the entry of its key stays
            continue
        if offset < end:
            comparison.take_record(partition, entry)
        else:
            comparison.take_later(entry)
        if number % _STEP == 0:
            yield min(offset, end) - start


def _require_one_topic(
    doing: str, positions: Mapping[int, CachePosition], id: str, limits: Mapping[int, tuple[int, int]]
) -> None:
    for partition, position in positions.items():
        if position.topic_id != id or partition not in limits or position.offset > limits[partition][1]:
            raise LozengeError(
                f"{doing}: what its server has of partition {partition} is of a topic that was deleted since",
                hint="the sink caches the topic of now from its beginning once it runs; then try again",
            )


def _require_no_loss(doing: str, before: Mapping[int, CachePosition], after: Mapping[int, CachePosition]) -> None:
    for partition, position in before.items():
        now = after.get(partition)
        if now is None or (now.epoch, now.offset) < (position.epoch, position.offset):
            raise LozengeError(
                f"{doing}: its server has lost what it had of partition {partition} meanwhile",
                hint="the sink, while it runs, reads those records again; then try again",
            )


def _now() -> int:
    return int(time.time() * 1000)
