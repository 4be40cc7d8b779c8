"""`loop.py START.json`: a consumer, a producer and a loop between them, as one writes it without a framework.

At least once: what it has read is committed every second, behind a flush. State is a dictionary, which a crash takes
along.
"""

from collections.abc import Callable
from typing import Any

from confluent_kafka import Message
from looping import Record, loop
from records import KIND, ORDER, counted, decoded, encoded, moved, rule

counts: dict[str, int] = {}
countries: dict[str, str] = {}


def count(event: dict[str, Any]) -> dict[str, Any] | None:
    card = event["card_id"]
    counts[card] = now = counts.get(card, 0) + 1
    return counted(event, now)


def follow(event: dict[str, Any]) -> dict[str, Any] | None:
    card = event["card_id"]
    alert = moved(event, countries.get(card))
    countries[card] = event["country"]
    return alert


PROCESSORS: dict[str, Callable[[dict[str, Any]], dict[str, Any] | None]] = {
    "rule": rule,
    "aggregate": count,
    "fold": follow,
}


process = PROCESSORS[KIND]


def produced(message: Message) -> Record | None:
    found = process(decoded(message.value() or b""))
    return None if found is None else (encoded(found), message.key())


loop(ORDER["input"], ORDER["output"], produced)
