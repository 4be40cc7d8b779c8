"""An alert that could not be written is refused with all that is wrong with it."""

from decimal import Decimal
from typing import Any

import pytest

from lozenge import Alert
from lozenge.detector.events import MAX_CHARACTERS


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


def test_an_alert_reports_all_of_its_problems() -> None:
    with pytest.raises(ValueError, match=r"reason is int.*score 2.*severity 'x'"):
        Alert(reason=1, score=2, severity="x")  # type: ignore[arg-type]


def test_an_alert_takes_values_of_any_type() -> None:
    Alert(reason="", score=Decimal("0.5"), values={"n": 1, "amount": Decimal(3)}, evidence=[None])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields",
    [{"title": "\ud83d"}, {"labels": {"a": "\ud83d"}}, {"values": {"a": "\udc00"}}, {"values": {"\udc00": 1}}],
    ids=ascii,
)
def test_an_alert_with_half_of_a_character_is_refused_since_no_record_can_hold_it(fields: Any) -> None:
    with pytest.raises(ValueError, match="has half of a character"):
        Alert(**{"reason": "seen", **fields})


def test_evidence_is_a_list_of_ids_and_no_text() -> None:
    with pytest.raises(ValueError, match=r"evidence is one text; write a list of event ids: \[event.event_id\]"):
        Alert(reason="r", evidence="e1")
