"""The raw records of a campaign: what each holds is decided by the seed and its number, when it happened by the clock.

Ordinary payments of a few cards; some are large, some declined, some in another country. In between come records
that cannot be read, some dated a day ahead, which no clock excuses, and some a day behind, of cards of their own.
"""

import json
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from random import Random
from typing import NamedTuple

CARDS, LATE_CARDS = 300, 20
LARGE_SHARE, DECLINED_SHARE, ODD_SHARE = 0.01, 0.02, 0.003
DAY = timedelta(days=1)
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
    large, declined = chance.random() < LARGE_SHARE, chance.random() < DECLINED_SHARE
    payment = {
        "txn_id": f"{seed:x}-{number:x}",
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
        # a window of a day ago may be open or closed by now, so nothing there is worth an alert
        "result": "declined" if declined and not late else "approved",
    }
    value = json.dumps(payment, separators=(",", ":")).encode()
    return Raw(payment["pan"].encode(), _spoilt(value, chance) if sort is Sort.POISON else value)


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
