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
    "message_kind": "reversal",
    "original_event_id": "00000000-0000-5000-8000-000000000000",
    "response_code": "000",
    "entry_mode": "chip",
    "card_present": True,
    "acquirer_id": "a-1",
    "trace_number": "000001",
    "settlement_amount": Decimal("-13.7000"),
    "settlement_currency": "USD",
    "device_id": None,
    "ip_address": "2001:db8::1",
    "ip_country": "FR",
    "email_token": "email_1",
    "latitude": 52.5,
    "longitude": -13.25,
    "raw": {"source": "s", "topic": "t", "partition": 0, "offset": 7, "timestamp": NOW},
}
