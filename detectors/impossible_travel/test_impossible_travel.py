from typing import Any

import pytest

from lozenge.testing import NOW, detector_of, late, run

detector = detector_of(__file__)
BERLIN: dict[str, Any] = {"latitude": 52.52, "longitude": 13.405, "country": "DE"}
PARIS: dict[str, Any] = {"latitude": 48.8566, "longitude": 2.3522, "country": "FR", "merchant_id": "merchant-2"}
POTSDAM: dict[str, Any] = {"latitude": 52.39, "longitude": 13.065, "country": "DE"}
JUMP = [BERLIN | {"at": "-12m"}, PARIS | {"at": "0s"}]


@pytest.mark.parametrize(
    ("one", "other", "km"),
    [
        ((52.52, 13.405), (48.8566, 2.3522), 877),
        ((0, 179.5), (0, -179.5), 111),
        ((90, 0), (90, 120), 0),
        ((90, 0), (-90, 77), 20_015),
        ((12.3, 45.6), (-12.3, -134.4), 20_015),
    ],
)
def test_distances_are_those_of_the_great_circle(
    one: tuple[float, float], other: tuple[float, float], km: float
) -> None:
    from impossible_travel.impossible_travel import Place, kilometres

    start, end = (
        Place(at=NOW, latitude=north, longitude=east, merchant_id=None, country=None, event_id="")
        for north, east in (one, other)
    )
    assert kilometres(start, end) == pytest.approx(km, abs=1)


def test_fires_if_nobody_travels_that_fast() -> None:
    [alert] = run(detector, JUMP)
    assert alert.reason == (
        "used 877 km apart within 12 min 0 s: at merchant merchant-1 in DE, then at merchant merchant-2 in FR"
    )
    assert (alert.entity, alert.evidence) == ("card-1", ("e1", "e2"))
    assert alert.values == {"kilometres": "877", "seconds_apart": "720.0"}
    assert 0.89 < alert.score < 0.9


def test_fires_up_to_the_time_that_an_airliner_takes() -> None:
    assert len(run(detector, [BERLIN | {"at": "-58m"}, PARIS | {"at": "0s"}])) == 1
    assert run(detector, [BERLIN | {"at": "-59m"}, PARIS | {"at": "0s"}]) == []
    assert len(run(detector, [BERLIN | {"at": "-5h"}, PARIS | {"at": "0s"}], {"speed_kmh": 150})) == 1


def test_fires_at_the_same_moment() -> None:
    [alert] = run(detector, [BERLIN | {"at": "0s"}, PARIS | {"at": "0s"}])
    assert alert.score == 1.0


def test_fires_on_a_declined_payment_and_on_the_way_back() -> None:
    there_and_back = [*JUMP, BERLIN | {"at": "5m", "auth_result": "declined"}]
    assert [alert.evidence for alert in run(detector, there_and_back)] == [("e1", "e2"), ("e2", "e3")]


def test_stays_silent_nearby() -> None:
    near = [BERLIN | {"at": "-10s"}, POTSDAM | {"at": "0s"}]
    assert run(detector, near) == []
    assert len(run(detector, near, {"least_km": 20})) == 1


def test_stays_silent_for_two_cards() -> None:
    assert run(detector, [JUMP[0], JUMP[1] | {"card_id": "card-2"}]) == []


def test_stays_silent_without_a_card_or_a_true_place() -> None:
    unfit: tuple[dict[str, Any], ...] = (
        {"card_present": False},
        {"amount": "-5"},
        {"latitude": 0.0, "longitude": 0.0},
        {"latitude": 148.0},
        {"longitude": 181.0},
    )
    pairs = [{**event, "card_id": f"card-{n}"} for n, odd in enumerate(unfit) for event in (JUMP[0], JUMP[1] | odd)]
    assert run(detector, pairs) == []
    assert len(run(detector, [JUMP[0], JUMP[1] | {"card_present": None, "amount": "0"}])) == 1


def test_a_missing_place_is_no_place() -> None:
    unknown = {"at": "-6m", "latitude": None, "longitude": None}
    [alert] = run(detector, [JUMP[0], unknown, JUMP[1]])
    assert alert.evidence == ("e1", "e3")


def test_the_earlier_payment_may_arrive_later() -> None:
    [alert] = run(detector, late(JUMP))
    assert alert.evidence == ("e1", "e2")
