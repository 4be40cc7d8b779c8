"""What a test gives for an event: partial events, and the dead letters that the command prints."""

import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from lozenge.streams.alert_stream import PATHS, event_of
from lozenge.testing import NOW, events
from lozenge.testing.events import event_table
from tests.alert_streams import LARGE, alert
from tests.merged_streams import BY_ACCOUNT
from tests.streams import AUTH


def printed(value: Any) -> dict[str, Any]:
    """As `lozenge dlq show NAME POSITION -o json` prints a dead letter."""
    found: dict[str, Any] = json.loads(
        json.dumps(
            {"position": "0:7", "reason": "detect: no", "value": value, "headers": {"attempt": "1"}}, default=str
        )
    )
    return found


def test_the_event_of_a_dead_letter_is_the_event_that_failed() -> None:
    [event] = events([{"amount": "12.50", "at": "-10m", "account_id": None}])
    assert events([printed(event)]) == [event]


def test_times_and_amounts_may_be_the_text_of_json() -> None:
    [event] = events([{"event_time": "2026-03-01T12:00:00Z", "amount": "1.5"}])
    assert (event["event_time"], event["amount"]) == (datetime(2026, 3, 1, 12, tzinfo=UTC), Decimal("1.5"))
    assert events([{"event_time": "2026-03-01T12:00:00"}])[0]["event_time"] == event["event_time"]
    assert events([{}])[0]["event_time"] > NOW


@pytest.mark.parametrize("value", ["0a0b", None, {"count": 3}, [1]])
def test_a_dead_letter_without_an_event_is_refused_by_name(value: Any) -> None:
    with pytest.raises(ValueError, match="event 2: the dead letter holds no event, but "):
        events([{}, printed(value)])


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"mcc": 5411}, "event 2: mcc is 5411, not text"),
        ({"card_id": 4000, "country": b"DE"}, "event 2: card_id is 4000, not text; country is b'DE', not text"),
        ({"amount": "12,50"}, "event 2: amount is '12,50', not a number with at most 14 digits and 4 decimals"),
        ({"amount": "1.23456"}, "event 2: amount is '1.23456'"),
        ({"amount": float("nan")}, "event 2: amount is nan"),
        ({"amount": 10**14}, "event 2: amount is 1000000"),
        ({"amount": True}, "event 2: amount is True"),
        ({"event_time": 1772366400}, "event 2: a time is 1772366400, not a datetime"),
        ({"event_time": "noon"}, "event 2: Invalid isoformat"),
        ("amount", "event 2 is 'amount'; pass a list of dictionaries"),
    ],
)
def test_a_value_of_another_type_is_named_with_its_event_and_field(given: Any, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(why)}"):
        events([{}, given])


def test_an_amount_may_be_any_number_that_an_event_can_hold() -> None:
    amounts: list[Any] = [12, 12.1, np.float64(0.3), np.int64(7), "99999999999999.9999", "-0.5", Decimal("1E+3")]
    expected = [12, Decimal("12.1"), Decimal("0.3"), 7, Decimal("99999999999999.9999"), Decimal("-0.5"), 1000]
    complete = events({"amount": amount} for amount in amounts)
    assert [event["amount"] for event in complete] == expected
    assert event_table(complete, "card_id", AUTH).num_rows == len(amounts)


def test_the_origin_of_an_event_may_be_given_in_part() -> None:
    [event] = events([{"raw": {"offset": 7}}])
    assert (event["raw"]["offset"], event["raw"]["source"], event["raw"]["timestamp"]) == (
        7,
        "test",
        event["event_time"],
    )


def test_an_event_of_several_streams_names_its_own_and_has_null_in_the_fields_of_the_others() -> None:
    payment, attempt = events([{"stream": "auth"}, {"stream": "sign_in", "at": "1m"}], BY_ACCOUNT)
    assert payment == events([{}])[0] | {"stream": "auth", "result": None, "attempts": None, "device": None}
    assert (attempt["stream"], attempt["result"], attempt["amount"], attempt["card_id"]) == (
        "sign_in",
        "passed",
        None,
        "card-1",
    )
    assert attempt["raw"]["topic"] == "SIGN-IN"
    assert events([payment, attempt], BY_ACCOUNT) == [payment, attempt], "complete events pass unchanged"
    assert event_table([payment, attempt], "account_id", BY_ACCOUNT).num_rows == 2


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"amount": 1}, "event 1: name the stream of the event: stream is one of auth, sign_in, not None"),
        ({"stream": "claims"}, "event 1: name the stream of the event: stream is one of auth, sign_in, not 'claims'"),
        ({"stream": "sign_in", "amount": 1}, "event 1: no such field: amount; an event of sign_in has event_id, event"),
        ({"stream": "auth", "attempts": 1}, "event 1: no such field: attempts; an event of auth has"),
        ({"stream": "auth", "nothing": None}, "event 1: no such field: nothing"),
    ],
)
def test_a_field_of_another_stream_is_an_error_and_so_is_an_event_of_none(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(why)}"):
        events([given], BY_ACCOUNT)


def test_a_dead_letter_of_several_streams_is_of_the_one_whose_fields_it_has() -> None:
    [event] = events([{}])
    [again] = events([printed(event)], BY_ACCOUNT)
    assert (again["stream"], again["event_id"]) == ("auth", "e1")


def test_a_dead_letter_of_a_detector_of_alerts_is_the_alert_that_failed() -> None:
    [event] = events([printed(alert(7))], LARGE)
    assert events([alert(7)], LARGE) == [event], "as `lozenge dlq debug` passes it"
    assert {name: event[name] for name in PATHS} == event_of(alert(7))
    assert event["raw"]["topic"] == "pay.alerts.large_amount.v1"
    [usual] = events([{}], LARGE)
    assert (usual["entity"], usual["detector"], usual["severity"]) == ("entity-1", "large_amount", "medium")
    assert event_table([event, usual], "entity", LARGE).num_rows == 2
