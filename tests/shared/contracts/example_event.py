"""One event with a value in every field, as the codec takes it."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
EVENT: dict[str, Any] = {
    "event_id": "e-1",
    "event_time": NOW,
    "card_id": "card_1",
    "account_id": None,
    "merchant_id": "m-1",
    "terminal_id": "t-1",
    "mcc": "5411",
    "country": "DE",
    "amount": Decimal("-12.5000"),
    "currency": "EUR",
    "channel": "pos",
    "auth_result": "approved",
    "raw": {"source": "s", "topic": "t", "partition": 0, "offset": 7, "timestamp": NOW},
}
