from typing import Any

import pytest
from pydantic import ValidationError

from lozenge.testing import detector_of, run

detector = detector_of(__file__)


def tried(count: int, every: int = 5, start: int = 0, **fields: Any) -> list[dict[str, Any]]:
    """A declined payment of each of `count` cards at one merchant, `every` seconds apart."""
    return [
        {"card_id": f"card-{start + n}", "at": f"{start + n * every}s", "auth_result": "declined", "amount": "1"}
        | fields
        for n in range(count)
    ]


def good(count: int, **fields: Any) -> list[dict[str, Any]]:
    """As many small payments that are approved."""
    return [{"card_id": f"good-{n}", "amount": "2.50", "at": "0s", **fields} for n in range(count)]


def test_fires_when_enough_cards_are_declined() -> None:
    [alert] = run(detector, tried(40))
    assert alert.reason == (
        "15 cards were declined within 70 s, of the last 15 payments up to 5, from 2024-05-14 12:00:00 UTC on"
    )
    assert (alert.entity, alert.evidence) == ("merchant-1", tuple(f"e{n}" for n in range(1, 16)))
    assert alert.values == {"cards": "15", "payments": "15", "seconds": "70"}
    assert (alert.score, alert.severity) == (1.0, "critical")


def test_fires_if_a_quarter_is_approved_and_no_more() -> None:
    assert len(run(detector, [*good(5), *tried(15)])) == 1
    mixed = [payment for n, card in enumerate(tried(60)) for payment in (card, *good(n % 3 // 2))]
    assert len(run(detector, mixed)) == 1
    half = [payment for card in tried(60) for payment in (card, *good(1, at=card["at"]))]
    assert run(detector, half) == []


def test_fires_again_only_after_a_quiet_hour() -> None:
    assert len(run(detector, tried(300, every=30))) == 1
    assert len(run(detector, [*tried(20), *tried(20, start=3600)])) == 1
    assert len(run(detector, [*tried(20), *tried(20, start=3600)], {"quiet": "10m"})) == 2
    assert len(run(detector, [*tried(20), *tried(20, start=9000)])) == 2


def test_stays_silent_up_to_the_limits() -> None:
    assert run(detector, tried(14)) == []
    assert run(detector, tried(15, every=43)) == []
    assert len(run(detector, tried(15, every=42))) == 1
    assert run(detector, tried(40, amount="5.01")) == []
    assert len(run(detector, tried(40, amount="5"))) == 1


def test_stays_silent_for_one_card_and_for_many_merchants() -> None:
    assert run(detector, tried(40, card_id="card-1")) == []
    assert run(detector, [{**each, "merchant_id": f"merchant-{n}"} for n, each in enumerate(tried(40))]) == []


def test_a_reversal_is_no_payment_and_a_verification_is_one() -> None:
    assert run(detector, tried(40, amount="-1")) == []
    assert len(run(detector, tried(40, amount="0"))) == 1


def test_a_missing_merchant_is_none() -> None:
    assert run(detector, tried(40, merchant_id=None)) == []


def test_more_cards_than_payments_are_refused() -> None:
    with pytest.raises(ValidationError, match="21 cards are never among 20 payments"):
        detector.detector.settings.model_validate({"cards": 21})
