"""A second stream, of sign-ins, and detectors' view of it together with authorisations."""

from datetime import UTC, datetime, timedelta
from typing import Any

from lozenge.streams.definition import StreamDefinition
from lozenge.streams.merged import merged
from tests.streams import AUTH

DEVICE = {
    "type": "record",
    "name": "Device",
    "fields": [
        {"name": "model", "type": "string"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["phone", "other"]}},
    ],
}
SIGN_IN = StreamDefinition(
    name="sign_in",
    title="Sign-ins",
    owner="identity",
    keys={"account": "account_id", "card": "card_id"},
    tokens={"card_id": "card"},
    retention=timedelta(days=3),
    app="upstream-sign_in",
    raw_topics=("SIGN-IN",),
    sources=("sign_in",),
    avro={
        "type": "record",
        "name": "SignIn",
        "namespace": "identity",
        "doc": "One attempt to sign in.",
        "fields": [
            {"name": "account_id", "type": "string", "example": "account-1"},
            {"name": "card_id", "type": ["null", "string"], "default": None, "example": "card-1"},
            {"name": "country", "type": "string", "codes": "country", "example": "DE"},
            {"name": "result", "type": {"type": "enum", "name": "Result", "symbols": ["passed", "failed"]}},
            {"name": "attempts", "type": "int"},
            {"name": "device", "type": ["null", DEVICE], "default": None},
        ],
    },
)
BY_ACCOUNT, BY_CARD = (merged([AUTH, SIGN_IN], key) for key in ("account", "card"))
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def sign_in(number: int, at: timedelta = timedelta(), **more: Any) -> dict[str, Any]:
    """A canonical event of a sign-in; `number` makes its id."""
    return {
        "event_id": f"sign-in-{number}",
        "event_time": NOON + at,
        "account_id": "account_1",
        "card_id": "card_1",
        "country": "DE",
        "result": "failed",
        "attempts": 1,
        "device": {"model": "x", "kind": "phone"},
        "raw": {"source": "test", "topic": "SIGN-IN", "partition": 0, "offset": number, "timestamp": NOON},
    } | more
