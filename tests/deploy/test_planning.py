"""What a candidate costs beside the live release."""

from lozenge_deploy.operations.impact import Impact, per_million


def test_cost_is_told_per_million_judged_events_with_the_ratio() -> None:
    found = Impact({"judged": 20_000, "cpu_seconds": 3.0}, {"judged": 10_000, "cpu_seconds": 1.0})
    assert found.cost == {"current": 100.0, "new": 150.0, "ratio": 1.5}


def test_without_a_live_release_there_is_no_ratio() -> None:
    assert Impact({"judged": 20_000, "cpu_seconds": 3.0}, None).cost == {"current": None, "new": 150.0, "ratio": None}


def test_nothing_judged_costs_nothing_that_could_be_told() -> None:
    assert per_million({"judged": 0, "cpu_seconds": 0.1}) is None
    assert per_million({"events": 5}) is None, "a release from before a trial told what it takes"
