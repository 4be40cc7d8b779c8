"""What should come of raw records, by plain Python over the raw topic alone. Nothing of Lozenge is imported here.

Only what is documented is repeated: how ids and card tokens are made, and when upstream refuses a record.
"""

import hashlib
import hmac
import json
import uuid
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

PartitionOffset = tuple[int, int]
"""Partition and offset of a raw record."""

NAMESPACE = uuid.UUID("6c6f7a65-6e67-5e00-8000-000000000001")
TOKEN_KEY = b"lozenge-demo-key-not-for-real-cards"
SOURCE = "auth_json"
FUTURE = timedelta(minutes=10)
TEXTS = ("txn_id", "ts", "pan", "merchant", "terminal", "mcc", "country", "amount", "currency", "channel", "result")
LARGE = 500
EVERY = 50
WINDOW, DECLINES = timedelta(minutes=10), 3
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Payment(NamedTuple):
    """A raw record that must become an event."""

    position: PartitionOffset
    event_id: str
    card_id: str
    at: datetime
    amount: Decimal
    declined: bool


class Expected(NamedTuple):
    """An alert that must be raised: its id, all of its evidence, and what else must be in it."""

    alert_id: str
    evidence: tuple[str, ...]
    values: tuple[tuple[str, str], ...] = ()


def uuid5(*parts: str) -> str:
    """An id of Lozenge's: UUIDv5 over the parts, joined by U+001F."""
    return str(uuid.uuid5(NAMESPACE, "\x1f".join(parts)))


def payment(position: PartitionOffset, value: bytes, timestamp_ms: int) -> Payment | None:
    """The payment in a raw record; None if it must be a dead letter."""
    try:
        fields = json.loads(value.decode())
        texts = {name: fields[name] for name in TEXTS}
        at, amount = datetime.fromisoformat(texts["ts"]), Decimal(texts["amount"])
    except (ValueError, KeyError, TypeError, InvalidOperation):
        return None
    if not all(isinstance(text, str) for text in texts.values()):
        return None
    if at > _EPOCH + timedelta(milliseconds=timestamp_ms) + FUTURE:
        return None
    token = hmac.new(TOKEN_KEY, texts["pan"].encode(), hashlib.sha256).hexdigest()[:24]
    return Payment(
        position, uuid5(SOURCE, texts["txn_id"]), f"card_{token}", at, amount, declined=texts["result"] == "declined"
    )


def alerts(payments: Iterable[Payment]) -> dict[str, list[Expected]]:
    """What each detector must raise, by its name. The payments of a card come in the order of their raw records."""
    raised: dict[str, list[Expected]] = {"each_large": [], "steady_count": [], "declined_often": []}
    cards: defaultdict[str, list[Payment]] = defaultdict(list)
    for payment in payments:
        cards[payment.card_id].append(payment)
    for card_id, own in cards.items():
        own.sort()
        raised["each_large"] += _large(card_id, own)
        raised["steady_count"] += _count(card_id, own)
        raised["declined_often"] += _declines(card_id, own)
    return raised


def _large(card_id: str, payments: Iterable[Payment]) -> Iterator[Expected]:
    for p in payments:
        if p.amount > LARGE:
            yield Expected(uuid5("each_large", "card", card_id, p.event_id), (p.event_id,))


def _count(card_id: str, payments: Iterable[Payment]) -> Iterator[Expected]:
    checksum = 0
    for number, p in enumerate(payments, 1):
        checksum = zlib.crc32(p.event_id.encode(), checksum)
        if number % EVERY == 0:
            values = (("checksum", str(checksum)), ("number", str(number)))
            yield Expected(uuid5("steady_count", "card", card_id, p.event_id), (p.event_id,), values)


def _declines(card_id: str, payments: Iterable[Payment]) -> Iterator[Expected]:
    windows: defaultdict[int, list[Payment]] = defaultdict(list)
    for p in payments:
        if not p.declined:
            continue
        window = windows[(p.at - _EPOCH) // WINDOW]
        window.append(p)
        if len(window) == DECLINES:
            start = (p.at - _EPOCH) // WINDOW * (WINDOW // timedelta(microseconds=1))
            alert_id = uuid5("declined_often", "card", card_id, f"{start}/{DECLINES}")
            yield Expected(alert_id, tuple(counted.event_id for counted in window))
