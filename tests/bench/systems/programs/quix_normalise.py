"""`quix_normalise.py START.json`: raw JSON records become canonical Avro events, card numbers become keyed tokens."""

import hashlib
import hmac
import json
import uuid
from datetime import datetime
from decimal import Decimal
from typing import Any

from quix_app import application
from quixstreams.models import Serializer
from records import NAME, ORDER, encoded_event

KEY = ORDER["token_key"].encode()


class Avro(Serializer):  # type: ignore[misc]  # Quix Streams is not in this environment
    """Framed Avro."""

    def __call__(self, value: dict[str, Any], ctx: Any) -> bytes:
        return encoded_event(value)


def normalised(value: bytes) -> dict[str, Any]:
    """The event of a raw record; one that is broken ends the application, for want of a dead-letter topic."""
    raw = json.loads(value)
    moment = datetime.fromisoformat(raw["ts"])
    return {
        "event_id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"auth_json/{raw['txn_id']}")),
        "event_time": moment,
        "card_id": f"card_{hmac.new(KEY, raw['pan'].encode(), hashlib.sha256).hexdigest()[:24]}",
        "account_id": raw["account"],
        "merchant_id": raw["merchant"],
        "terminal_id": raw["terminal"],
        "mcc": raw["mcc"],
        "country": raw["country"],
        "amount": Decimal(raw["amount"]),
        "currency": raw["currency"],
        "channel": raw["channel"],
        "auth_result": raw["result"],
        "raw": {"source": "auth_json", "topic": ORDER["raw"], "partition": 0, "offset": 0, "timestamp": moment},
    }


def card(event: dict[str, Any]) -> str:
    """The key of an event."""
    return str(event["card_id"])


def main() -> None:
    app = application(f"{NAME}-normalise")
    source = app.topic(ORDER["raw"], key_deserializer="bytes", value_deserializer="bytes")
    sink = app.topic(ORDER["input"], key_serializer="str", value_serializer=Avro())
    app.dataframe(source).apply(normalised).to_topic(sink, key=card)
    app.run()


main()
