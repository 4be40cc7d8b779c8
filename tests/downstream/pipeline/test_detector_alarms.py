"""The notifier reports a flood of alerts and a detector that falls silent."""

from collections.abc import Callable

from lozenge_downstream.model import Baseline, ReceivedRecord
from lozenge_downstream.pipeline.detector_alarms import silence_alarms
from tests.downstream.conftest import Desk

MakeRecord = Callable[..., ReceivedRecord]


def test_a_flood_is_reported_once_an_hour(desk: Desk, record: MakeRecord) -> None:
    desk.routing(rate_limit={"alerts": 1, "within": "1m"})
    desk.take(*(record(n) for n in range(5)))
    desk.take(*(record(n) for n in range(5, 9)))
    alarms = [n for n in desk.notifications() if n["detector"] == "lozenge"]
    assert [(notifications["title"], notifications["subject"]) for notifications in alarms] == [
        ("large_amount exceeds its rate limit", "detector:large_amount")
    ]


def test_a_detector_that_falls_silent_against_its_history_is_reported_once(desk: Desk, record: MakeRecord) -> None:
    def raise_silence_alarms() -> list[str]:
        with desk.store.transaction(exclusive=True) as t:
            desk.pipeline.raise_silence_alarms(t)
        return [n["title"] for n in desk.notifications() if n["detector"] == "lozenge"]

    for number in range(4 * 24):
        desk.take(record(number), record(1000 + number))
        assert raise_silence_alarms() == []
        desk.now += 3600
    desk.now += 3 * 3600
    assert raise_silence_alarms() == [], "six to eight alerts that do not come may be chance"
    desk.now += 4 * 3600
    assert raise_silence_alarms() == ["large_amount is silent"]
    assert raise_silence_alarms() == ["large_amount is silent"]


def test_a_detector_of_many_alerts_a_minute_is_not_silent_between_two(desk: Desk, record: MakeRecord) -> None:
    desk.take(record(0))
    desk.now += 3 * 86_400
    desk.take(record(1))
    with desk.store.reading() as t:
        (seen,) = t.received_alerts.baselines(14).values()
    busy = Baseline(seen.first_at, seen.last_at, [1800.0] * 24)
    assert list(silence_alarms({"busy": busy}, desk.now + 59)) == []
    assert list(silence_alarms({"busy": busy}, desk.now + 299)) == []
    assert len(list(silence_alarms({"busy": busy}, desk.now + 361))) == 1


def test_a_detector_that_is_new_may_be_silent(desk: Desk, record: MakeRecord) -> None:
    desk.take(*(record(n) for n in range(100)))
    desk.now += 30 * 86_400
    with desk.store.transaction(exclusive=True) as t:
        desk.pipeline.raise_silence_alarms(t)
    assert all(notifications["detector"] == "large_amount" for notifications in desk.notifications())
