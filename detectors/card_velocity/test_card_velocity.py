from typing import Any

from lozenge.testing import detector_of, run

detector = detector_of(__file__)


def burst(count: int, every: int = 10, **fields: Any) -> list[dict[str, Any]]:
    """`count` authorisations of one card, `every` seconds apart, from the start of a window."""
    return [{"at": f"{n * every}s", **fields} for n in range(count)]


def test_fires_when_a_band_is_reached() -> None:
    [alert] = run(detector, burst(7))
    assert alert.reason == "used 6 times within 50 s, from 2024-05-14 12:00:00 UTC on"
    assert (alert.entity, alert.evidence) == ("card-1", ("e1", "e2", "e3", "e4", "e5", "e6"))
    assert f"{alert.event_time:%H:%M:%S}" == "12:00:50"


def test_every_band_raises_one_alert_even_if_one_batch_reaches_several() -> None:
    alerts = run(detector, burst(24, every=20))
    assert [alert.values["uses"] for alert in alerts] == ["6", "12", "24"]
    assert [round(alert.score, 2) for alert in alerts] == [0.33, 0.67, 1.0]


def test_stays_silent_below_the_first_band() -> None:
    assert run(detector, burst(5)) == []
    assert run(detector, [*burst(3), *burst(3, card_id="card-2")]) == []


def test_the_edge_of_a_window_divides_a_burst() -> None:
    assert run(detector, [{"at": f"{seconds}s"} for seconds in range(-25, 26, 10)]) == []


def test_a_missing_merchant_does_not_matter() -> None:
    assert len(run(detector, burst(6, merchant_id=None, terminal_id=None))) == 1
