"""What the Python programs of peers share: their order, and Avro as its users write it. It imports nothing of ours."""

import hashlib
import hmac
import io
import json
import os
import struct
import sys
import time
import uuid
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro

# PyFlink's interpreters have an environment, and no arguments
ORDER: dict[str, Any] = json.loads(Path(os.environ.get("START") or sys.argv[1]).read_text())
LIMIT, EVERY, KIND, NAME = Decimal(ORDER["limit"]), ORDER["every"], ORDER["kind"], ORDER["name"]
_TOKEN_KEY = ORDER["token_key"].encode()
_EVENT = fastavro.parse_schema(ORDER["event_schema"])
_ALERT = fastavro.parse_schema(ORDER["alert_schema"])
_HEADER, _EVENT_HEADER = (struct.pack(">bI", 0, ORDER[f"{name}_schema_id"]) for name in ("alert", "event"))


def decoded(value: bytes) -> dict[str, Any]:
    """The event in framed bytes."""
    event: Any = fastavro.schemaless_reader(io.BytesIO(value[len(_HEADER) :]), _EVENT, None)
    return dict(event)


def decoded_alert(value: bytes) -> dict[str, Any]:
    """The alert in framed bytes."""
    found: Any = fastavro.schemaless_reader(io.BytesIO(value[len(_HEADER) :]), _ALERT, None)
    return dict(found)


def encoded(alert: dict[str, Any]) -> bytes:
    """The framed bytes of an alert."""
    return _framed(_HEADER, _ALERT, alert)


def encoded_event(event: dict[str, Any]) -> bytes:
    """The framed bytes of an event."""
    return _framed(_EVENT_HEADER, _EVENT, event)


def _framed(header: bytes, schema: Any, record: dict[str, Any]) -> bytes:
    out = io.BytesIO(header)
    out.seek(len(header))
    fastavro.schemaless_writer(out, schema, record)
    return out.getvalue()


def normalised(value: bytes) -> dict[str, Any]:
    """The event of a raw record in JSON; raises ValueError, LookupError or ArithmeticError if it is broken."""
    raw = json.loads(value)
    moment = datetime.fromisoformat(raw["ts"])
    return {
        "event_id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"auth_json/{raw['txn_id']}")),
        "event_time": moment,
        "card_id": f"card_{hmac.new(_TOKEN_KEY, raw['pan'].encode(), hashlib.sha256).hexdigest()[:24]}",
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


def alert(event: dict[str, Any], dedup_key: str, reason: str, values: dict[str, str]) -> dict[str, Any]:
    """An alert about the event; its id is the same after any replay."""
    return {
        "alert_id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{NAME}/{event['card_id']}/{dedup_key}")),
        "detector": NAME,
        "release": "1",
        "settings_digest": "",
        "entity": {"type": "card", "id": event["card_id"]},
        "severity": "medium",
        "score": 0.5,
        "title": "Benchmark",
        "reason": reason,
        "evidence": {"event_ids": [event["event_id"]], "values": values},
        "event_time": event["event_time"],
        "detected_at": datetime.fromtimestamp(time.time(), UTC),
        "labels": {},
    }


def rule(event: dict[str, Any]) -> dict[str, Any] | None:
    """The alert of an event above the limit."""
    amount = event["amount"]
    if amount <= LIMIT:
        return None
    said = f"{amount:.2f} {event['currency']}"
    reason = f"{said} at merchant {event['merchant_id']} is above the limit"
    return alert(event, event["event_id"], reason, {"amount": said})


def counted(event: dict[str, Any], count: int) -> dict[str, Any] | None:
    """The alert of a card's count, if it is due."""
    if count % EVERY:
        return None
    return alert(event, str(count), f"event {count} of this card", {"count": str(count)})


def moved(event: dict[str, Any], last: str | None) -> dict[str, Any] | None:
    """The alert of a card that is in another country than it was last."""
    country = event["country"]
    if last in (None, country):
        return None
    return alert(event, event["event_id"], f"in {country}, and in {last} before", {"country": country})
