from typing import Any

import pytest

from lozenge.testing import detector_of, run, shuffled

detector = detector_of(__file__)
OWNER = {"device_id": "phone"}
THIEF: dict[str, Any] = {"device_id": "stranger", "ip_country": "RO"}


def login(at: str, **fields: Any) -> dict[str, Any]:
    return {"stream": "login", "at": at, "action": "login", "result": "success", **OWNER, **fields}


def payment(at: str, **fields: Any) -> dict[str, Any]:
    return {"stream": "auth", "at": at, "amount": "80.0000", "currency": "EUR", **OWNER, **fields}


def failures(count: int, at: int = 0) -> list[dict[str, Any]]:
    """Failed logins of the thief, five seconds apart."""
    return [login(f"{at + 5 * n}s", **THIEF | {"result": "failure"}) for n in range(count)]


HOME = login("-2d")
ENTRANCE = login("1m", **THIEF)
PAID = payment("5m", **THIEF)
RESET = login("3m", **THIEF, action="password_reset")
GUESSED = [HOME, *failures(3), ENTRANCE, PAID]


def test_fires_on_a_payment_after_failed_logins() -> None:
    [alert] = run(detector, GUESSED)
    assert alert.reason == (
        "80.00 EUR at merchant merchant-1 from a device that first logged in 4 min earlier, from RO; "
        "3 failed logins before that"
    )
    assert (alert.entity, alert.evidence, alert.score) == ("account-1", ("e2", "e3", "e4", "e5", "e6"), 0.7)
    assert alert.values == {
        "device_id": "stranger",
        "amount": "80.0000",
        "currency": "EUR",
        "failures": "3",
        "changes": "0",
    }


@pytest.mark.parametrize("action", ["password_reset", "email_change", "factor_change"])
def test_fires_on_a_payment_after_a_change_of_the_login(action: str) -> None:
    [alert] = run(detector, [HOME, ENTRANCE, RESET | {"action": action}, PAID])
    assert alert.reason.endswith("; 1 change of the login after that")
    assert alert.evidence == ("e2", "e3", "e4")


def test_both_signs_score_higher() -> None:
    [alert] = run(detector, [HOME, *failures(4), ENTRANCE, RESET, PAID])
    assert alert.score == 0.9
    assert alert.reason.endswith("; 4 failed logins before and 1 change of the login after that")


def test_fires_on_a_change_that_follows_the_payment() -> None:
    [alert] = run(detector, [HOME, ENTRANCE, PAID, RESET | {"at": "9m"}])
    assert alert.evidence == ("e2", "e3", "e4")


@pytest.mark.parametrize("seed", range(5))
def test_fires_in_any_order_of_arrival(seed: int) -> None:
    assert len(run(detector, shuffled([HOME, *failures(4), ENTRANCE, RESET, PAID], seed, detector.stream))) == 1


def test_fires_where_logins_are_behind() -> None:
    [alert] = run(detector, [PAID, HOME, *failures(3), ENTRANCE])
    assert alert.evidence == ("e3", "e4", "e5", "e6", "e1")


def test_a_device_raises_one_alert() -> None:
    more = [payment(f"{n}m", **THIEF) for n in range(6, 30)]
    assert len(run(detector, [*GUESSED, *more, RESET | {"at": "40m"}])) == 1
    other = {"device_id": "another"}
    again = [*failures(3, at=3600), login("62m", **other), payment("63m", **other)]
    assert len(run(detector, [*GUESSED, *again])) == 2


def test_stays_silent_on_the_first_device_and_on_known_ones() -> None:
    assert run(detector, [*failures(3), ENTRANCE, PAID]) == []
    mistyped = [login(f"{n}s", result="failure") for n in range(5)]
    assert run(detector, [HOME, *mistyped, login("1m"), login("2m", action="password_reset"), payment("5m")]) == []


def test_stays_silent_without_a_sign() -> None:
    assert run(detector, [HOME, *failures(2), ENTRANCE, PAID]) == []
    assert run(detector, [HOME, *failures(3), ENTRANCE | {"at": "61m"}, PAID | {"at": "62m"}]) == []
    assert run(detector, [HOME, ENTRANCE, RESET | {"result": "failure"}, PAID]) == []
    assert run(detector, [HOME, ENTRANCE, RESET | OWNER, PAID]) == []


def test_stays_silent_without_a_payment_from_the_device() -> None:
    unfit: tuple[dict[str, Any], ...] = (
        OWNER,
        {"device_id": None},
        {"amount": "0"},
        {"amount": "-5"},
        {"account_id": "account-2"},
        {"at": "30s"},
        {"at": "1442m"},
    )
    for odd in unfit:
        assert run(detector, [HOME, *failures(3), ENTRANCE, PAID | odd]) == []


def test_settings_are_limits() -> None:
    assert len(run(detector, [HOME, *failures(1), ENTRANCE, PAID], {"failures": 1})) == 1
    assert run(detector, GUESSED, {"window": "30s"}) == []
    assert run(detector, GUESSED, {"within": "3m"}) == []
    assert len(run(detector, GUESSED, {"within": "4m"})) == 1


def test_a_missing_device_or_country_is_none() -> None:
    nameless = [{**each, "device_id": None} for each in failures(3)]
    [alert] = run(detector, [HOME, *nameless, login("59s", device_id=None), ENTRANCE | {"ip_country": None}, PAID])
    assert "from an unknown country" in alert.reason


def test_a_storm_of_failures_keeps_the_state_small() -> None:
    [alert] = run(detector, [HOME, *failures(11), ENTRANCE, PAID])
    assert alert.values["failures"] == "10"
