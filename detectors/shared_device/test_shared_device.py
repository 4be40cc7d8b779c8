from typing import Any

import pytest
from pydantic import ValidationError

from lozenge.testing import detector_of, run, shuffled

detector = detector_of(__file__)


def cards(count: int, every: int = 60, **fields: Any) -> list[dict[str, Any]]:
    """One payment with each of `count` cards, `every` seconds apart, the first one now."""
    return [{"card_id": f"card-{n}", "at": f"{n * every}s", **fields} for n in range(count)]


def test_fires_when_a_band_is_reached() -> None:
    [alert] = run(detector, cards(5))
    assert alert.reason == "paid with 4 cards within 3 min 0 s, from 2024-05-14 12:00:00 UTC on"
    assert (alert.entity, alert.evidence) == ("device-1", ("e1", "e2", "e3", "e4"))
    assert alert.values == {"cards": "card-0 card-1 card-2 card-3", "band": "4"}


def test_every_band_raises_one_alert() -> None:
    alerts = run(detector, cards(30))
    assert [(alert.values["band"], round(alert.score, 2)) for alert in alerts] == [("4", 0.33), ("8", 0.67), ("16", 1)]
    assert run(detector, cards(30), {"bands": [2]})[0].score == 1


def test_fires_on_declined_payments_in_any_order() -> None:
    assert len(run(detector, shuffled(cards(4, auth_result="declined")))) == 1


def test_fires_up_to_the_end_of_the_window() -> None:
    assert len(run(detector, cards(4, every=8 * 3600))) == 1
    assert run(detector, cards(4, every=8 * 3600 + 1)) == []
    assert len(run(detector, cards(4, every=8 * 3600 + 1), {"within": "25h"})) == 1


def test_stays_silent_below_the_first_band() -> None:
    assert run(detector, [*cards(3), *cards(3, at="200s")]) == []
    assert run(detector, [{"device_id": f"device-{n}", **card} for n, card in enumerate(cards(9))]) == []


def test_stays_silent_after_its_alert_until_the_device_was_quiet() -> None:
    again = [{**card, "at": f"{day}d"} for day in (0, 2, 4) for card in cards(4)]
    assert len(run(detector, [*cards(4), *cards(4, at="5m")])) == 1
    assert len(run(detector, again)) == 3


def test_the_latest_use_of_a_card_counts() -> None:
    again = {"card_id": "card-0", "at": "20h"}
    [alert] = run(detector, [*cards(2), again, *({"card_id": f"card-{n}", "at": "23h"} for n in (2, 3))])
    assert alert.evidence == ("e2", "e3", "e4", "e5")


def test_a_missing_device_is_none() -> None:
    assert run(detector, cards(9, device_id=None)) == []


@pytest.mark.parametrize("bands", [(), (1,), (4, 4), (8, 4)])
def test_bands_rise(bands: tuple[int, ...]) -> None:
    with pytest.raises(ValidationError):
        detector.detector.settings.model_validate({"bands": bands})
