"""The latest records of any topic, decoded for people."""

import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from confluent_kafka import Message

from lozenge.errors import UsageError
from lozenge.kafka.schema_registry import settle_ids
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.topic_reader import bounds, tail
from lozenge.near_names import near_hint
from lozenge_deploy.observe.record_view import decoded, shown_headers, text, time_of

STEP = 20
"""Offsets before the end at which the search begins: records may be large."""


def latest(kafka: KafkaSettings, topic: str, count: int, *, card_numbers: bool = False) -> Iterator[dict[str, Any]]:
    """The newest `count` committed records of each partition together, oldest first, at most `count` in all.

    With `card_numbers` they show these too. Raises UsageError for a topic that does not exist, BrokerUnavailable.
    """
    existing = partitions(kafka)
    if topic not in existing:
        every = f"`lozenge peek` lists all {len(existing)}"
        raise UsageError(
            f"reading {topic}: there is no such topic",
            hint="; ".join(filter(None, (near_hint(topic, existing), every))),
        )
    schemas = settle_ids(kafka, ())
    found = tail(kafka, topic, bounds(kafka, topic, existing[topic]), count, step=STEP)
    for message in in_order(found, time.time())[-count:]:
        yield {
            "partition": message.partition(),
            "offset": message.offset(),
            "time": time_of(message),
            "key": text(message.key(), card_numbers=card_numbers),
            "value": decoded(message.value(), schemas, card_numbers=card_numbers),
            "headers": shown_headers(message.headers(), card_numbers=card_numbers),
        }


def in_order(messages: Sequence[Message], now: float) -> list[Message]:
    """Records, those of a partition by offset, in the order in which they were written at Unix time `now` or before.

    Partitions are merged by the records' timestamps as far as these can be true. A time in the future counts as that
    of the next record of the partition, one before the previous record's as the previous record's: so a record with a
    wrong time neither stays the newest for ever, nor is it the oldest.
    """
    ordered: list[tuple[int, Message]] = []
    for _, group in groupby(messages, key=lambda message: message.partition()):
        found = list(group)
        times = [message.timestamp()[1] for message in found]
        following = int(now * 1000)
        for index in reversed(range(len(times))):
            times[index] = following = min(times[index], following) if times[index] > now * 1000 else times[index]
        previous = 0
        for at, message in zip(times, found, strict=True):
            previous = max(previous, at)
            ordered.append((previous, message))
    return [message for _, message in sorted(ordered, key=lambda each: each[0])]
