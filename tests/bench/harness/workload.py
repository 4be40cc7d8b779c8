"""The events of a benchmark by number, and which of them raise an alert in each task: a pure function of the number.

The cards come round in laps: each lap touches every card once, in an order that looks random and is another in
each lap. So the k-th event of a card is known without looking, and so is the event behind every alert.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

Kind = Literal["rule", "aggregate", "fold", "normalise"]

LIMIT = Decimal("500.00")
"""What a rule compares with: an event that raises an alert is above it, every other one below."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STRIDE, _SHIFT = 76_543, 31_337


@dataclass(frozen=True, slots=True)
class Task:
    """What every system of a row has to do alike, on events of `keys` cards.

    rule: alert on each event above `LIMIT`, which is every `every`-th one. aggregate: count the events of each card and
    alert on each count that is a multiple of `every`. fold: alert on a card's event in another country than the one
    before it, which is every `every`-th one of a card. normalise: make the canonical event of each raw record.
    """

    kind: Kind
    every: int = 1
    keys: int = 100_000

    def raises(self, n: int) -> bool:
        """Whether event number `n` raises an alert."""
        if self.kind == "normalise":
            return True
        if self.kind == "rule":
            return n % self.every == 0
        lap, card = self._lap(n)
        if self.kind == "aggregate":
            return (lap + 1) % self.every == 0
        return lap > 0 and (lap + card) % self.every == 0

    def event(self, n: int, moment_ns: int) -> dict[str, Any]:
        """Event number `n`, stamped with the moment at which it is meant to be sent, in nanoseconds since 1970."""
        lap, card = self._lap(n)
        moment = _EPOCH + timedelta(microseconds=moment_ns // 1000)
        return {
            "event_id": f"{n:012d}-bench",
            "event_time": moment,
            "card_id": f"card_{card:024d}",
            "account_id": None,
            "merchant_id": f"m-{n % 2000:05d}",
            "terminal_id": f"t-{n % 9000:06d}",
            "mcc": ("5411", "5812", "5541")[n % 3],
            "country": ("DE", "FR")[(lap + card) // self.every % 2],
            "amount": Decimal("900.00") if n % self.every == 0 else Decimal("10.00"),
            "currency": "EUR",
            "channel": ("pos", "ecom")[n % 2],
            "auth_result": "approved",
            "raw": {"source": "bench", "topic": "AUTH-JSON", "partition": 0, "offset": n, "timestamp": moment},
        }

    def raw(self, n: int, moment_ns: int) -> dict[str, Any]:
        """The raw record of event number `n`, in the format `auth_json`; its merchant names the number."""
        event = self.event(n, moment_ns)
        return {
            "txn_id": event["event_id"],
            "ts": event["event_time"].isoformat().replace("+00:00", "Z"),
            "pan": f"4{event['card_id'][-15:]}",
            "account": None,
            "merchant": f"m-{n:012d}",
            "terminal": event["terminal_id"],
            "mcc": event["mcc"],
            "country": event["country"],
            "amount": str(event["amount"]),
            "currency": event["currency"],
            "channel": event["channel"],
            "result": event["auth_result"],
        }

    def number_of(self, record: dict[str, Any]) -> int:
        """The number of the event that an alert is about, or that was made of its raw record.

        Raises ValueError or LookupError if it names none.
        """
        if self.kind == "normalise":
            return int(record["merchant_id"].removeprefix("m-"))
        if self.kind != "aggregate":
            return number(record["evidence"]["event_ids"][-1])
        lap, card = int(record["evidence"]["values"]["count"]) - 1, int(record["entity"]["id"].removeprefix("card_"))
        return lap * self.keys + (card - lap * _SHIFT) * pow(_STRIDE, -1, self.keys) % self.keys

    def _lap(self, n: int) -> tuple[int, int]:
        """How often its card was seen before, and the card."""
        lap, position = divmod(n, self.keys)
        return lap, (position * _STRIDE + lap * _SHIFT) % self.keys


def notified(body: bytes) -> int:
    """The number of the event that a rule's notification is about, as a webhook brings it: the merchant names it."""
    text: str = json.loads(body)["data"]["text"]
    return int(text.partition(" at merchant m-")[2].partition(" ")[0])


def number(event_id: str) -> int:
    """The number in the id of an event."""
    return int(event_id.partition("-")[0])
