"""What a test gives for an event: partial events, and the dead letters that the command prints."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from lozenge.testing import NOW, events


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
