from typing import Any

from lozenge.testing import detector_of, run

detector = detector_of(__file__)


def payments(*minutes: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"at": f"{minute}m", "auth_result": "declined"} | fields for minute in minutes]


def test_fires_at_the_third_declined_payment() -> None:
    approved = payments(0, auth_result="approved")
    [alert] = run(detector, approved + payments(0, 1, 2, 3))
    assert alert.evidence == ("e2", "e3", "e4")


def test_stays_silent_below_the_limit_in_each_window() -> None:
    assert run(detector, payments(0, 1, 30, 31)) == []


def test_a_missing_card_is_nobody() -> None:
    assert run(detector, payments(0, 1, 2, 3, card_id=None)) == []
