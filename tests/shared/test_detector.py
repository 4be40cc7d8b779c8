"""What an author declares and raises: settings with a stable digest, and alerts that can be written."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from lozenge import Alert, Duration, Settings
from lozenge.detector.events import MAX_CHARACTERS


class Limits(Settings):
    within: Duration = timedelta(minutes=10)
    limit: float = 220.0
    names: tuple[str, ...] = ("a", "b")


class Reordered(Settings):
    names: tuple[str, ...] = ("a", "b")
    limit: float = 220.0
    within: Duration = timedelta(minutes=10)


def test_the_digest_is_that_of_the_values() -> None:
    assert Limits().digest == "6f703116dce5", "alerts of older releases carry this digest: it must not change"
    assert Limits(within="600s").digest == Limits().digest == Reordered().digest  # type: ignore[arg-type]
    assert Limits(limit=221.0).digest != Limits().digest


def test_settings_are_immutable_and_know_their_names() -> None:
    with pytest.raises(ValidationError):
        Limits(limits=3)  # type: ignore[call-arg]
    with pytest.raises(ValidationError):
        Limits().limit = 3.0


def test_a_duration_says_what_it_takes() -> None:
    with pytest.raises(ValidationError, match='"90s", "10m", "1h" or "30d"'):
        Limits(within="soon")  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="longer than the longest duration"):
        Limits(within="99999999999999d")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"reason": 3}, "reason is int, not text"),
        ({"title": b"bytes"}, "title is bytes, not text"),
        ({"labels": {"mcc": 5411}}, "label mcc is int, not text"),
        ({"values": {1: "one"}}, "name 1 is int, not text"),
        ({"evidence": [7]}, "evidence 0 is int, not text"),
        ({"score": float("nan")}, "score nan does not lie between 0 and 1"),
        ({"score": "high"}, "score 'high' does not lie between 0 and 1"),
        ({"score": -0.1}, "score -0.1 does not lie between 0 and 1"),
        ({"severity": "urgent"}, "severity 'urgent' is none of info, low, medium, high, critical"),
        ({"values": {"all": "x" * MAX_CHARACTERS}}, f"more than {MAX_CHARACTERS}"),
    ],
)
def test_an_alert_that_could_not_be_written_is_refused(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match="the alert cannot be written") as refused:
        Alert(**{"reason": "because", **given})
    assert complaint in str(refused.value)


def test_an_alert_tells_all_that_is_wrong_with_it() -> None:
    with pytest.raises(ValueError, match=r"reason is int.*score 2.*severity 'x'"):
        Alert(reason=1, score=2, severity="x")  # type: ignore[arg-type]


def test_an_alert_takes_values_of_any_type() -> None:
    Alert(reason="", score=Decimal("0.5"), values={"n": 1, "amount": Decimal(3)}, evidence=[None])  # type: ignore[arg-type]
