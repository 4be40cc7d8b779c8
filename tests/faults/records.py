"""The raw records of a campaign: what each holds is decided by the seed and its number, when it happened by the clock.

Ordinary payments of a few cards; some are large, some declined, some in another country. In between come records
that cannot be read, some dated a day ahead, which no clock excuses, and some a day behind, of cards of their own.
On request a part of them are rows of files.
"""

import json
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from random import Random
from typing import NamedTuple

CARDS, LATE_CARDS, FILE_CARDS = 300, 20, 5
LARGE_SHARE, DECLINED_SHARE, ODD_SHARE = 0.01, 0.02, 0.003
DAY = timedelta(days=1)
LATE_RESULT = "approved"
"""The window of a late payment may be open or closed by now, so nothing there is worth an alert."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Sort(StrEnum):
    """What is special about a record."""

    ORDINARY = "ordinary"
    AHEAD = "ahead"
    BEHIND = "behind"
    POISON = "poison"


class Raw(NamedTuple):
    """A record of the raw topic."""

    key: bytes
    value: bytes


def record(seed: int, number: int, at: int, sort: Sort = Sort.ORDINARY) -> Raw:
    """The record `number`, sent at `at` (microseconds since 1970); a few of the ordinary ones are not after all."""
    chance = Random(f"{seed}/{number}")
    if sort is Sort.ORDINARY and chance.random() < ODD_SHARE:
        sort = chance.choice([Sort.AHEAD, Sort.BEHIND, Sort.POISON])
    late = sort is Sort.BEHIND
    card = CARDS + chance.randrange(LATE_CARDS) if late else chance.randrange(CARDS)
    when = _EPOCH + timedelta(microseconds=at)
    when += {Sort.AHEAD: DAY, Sort.BEHIND: -DAY}.get(sort, timedelta())
    payment = _payment(f"{seed:x}-{number:x}", when, card, chance)
    if late:
        payment["result"] = LATE_RESULT
    value = json.dumps(payment, separators=(",", ":")).encode()
    return Raw(payment["pan"].encode(), _spoilt(value, chance) if sort is Sort.POISON else value)


def row(seed: int, file: int, number: int, at: int) -> dict[str, str]:
    """The row `number` of a file, of a payment at `at`; it is copied later.

    Its card is in no other file and no other record: only the rows of one file are in an order.
    """
    chance = Random(f"{seed}/{file}/{number}")
    card = CARDS + LATE_CARDS + file * FILE_CARDS + chance.randrange(FILE_CARDS)
    payment = _payment(f"{seed:x}-{file:x}-{number:x}", _EPOCH + timedelta(microseconds=at), card, chance)
    return payment | {"result": LATE_RESULT}


def _payment(txn_id: str, when: datetime, card: int, chance: Random) -> dict[str, str]:
    large, declined = chance.random() < LARGE_SHARE, chance.random() < DECLINED_SHARE
    return {
        "txn_id": txn_id,
        "ts": when.isoformat(timespec="microseconds")[:-6] + "Z",
        "pan": f"4{card:015d}",
        "account": f"a-{card}",
        "merchant": f"m-{chance.randrange(50)}",
        "terminal": f"t-{chance.randrange(200)}",
        "mcc": "5411",
        "country": "DE",
        "amount": str(chance.randint(900, 2000) if large else chance.randint(1, 99)) + ".00",
        "currency": "EUR",
        "channel": "pos",
        "result": "declined" if declined else "approved",
    }


def _spoilt(value: bytes, chance: Random) -> bytes:
    return chance.choice(
        [
            value[: len(value) // 2],
            b"",
            b"\xff\xfe" + value,
            value.replace(b'"amount"', b'"sum"'),
            value.replace(b'"currency":"EUR"', b'"currency":["EUR"]'),
        ]
    )
