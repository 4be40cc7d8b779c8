"""What a candidate costs compared with the live release."""

from lozenge_deploy.operations.impact import Impact, per_million


def test_cost_is_per_million_processed_events_with_a_ratio() -> None:
    found = Impact({"processed": 20_000, "cpu_seconds": 3.0}, {"processed": 10_000, "cpu_seconds": 1.0})
    assert found.cost == {"current": 100.0, "new": 150.0, "ratio": 1.5}


def test_without_a_live_release_there_is_no_ratio() -> None:
    assert Impact({"processed": 20_000, "cpu_seconds": 3.0}, None).cost == {
        "current": None,
        "new": 150.0,
        "ratio": None,
    }


def test_without_processed_events_there_is_no_cost() -> None:
    assert per_million({"processed": 0, "cpu_seconds": 0.1}) is None
    assert per_million({"events": 5}) is None
