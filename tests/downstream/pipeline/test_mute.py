"""Silences, inhibitions and time windows mute alerts, and what is notified once they end."""

from collections.abc import Callable

import pytest

from lozenge_downstream.model import ReceivedRecord
from lozenge_downstream.pipeline.mute import rule_of
from lozenge_downstream.store import tables
from tests.downstream.conftest import Desk
from tests.downstream.pipeline.cases import silence, statuses, take_one_and_silence_the_next

MakeRecord = Callable[..., ReceivedRecord]
BY_CARD = {"group_by": ["entity"], "group_interval": "5m", "resolve_timeout": "1h"}


def test_a_silence_mutes_the_repeats_of_a_case_and_not_its_end(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD | {"repeat_interval": "10m", "send_resolved": True})
    desk.take(record(0))
    silence(desk, 'detector = "large_amount"', seconds=1800)
    for _ in range(5):
        desk.later(300)
    assert statuses(desk) == ["opened"]
    assert desk.later(0) == 0, "it is looked at again later, not again and again"
    desk.later(301)
    assert statuses(desk) == ["opened", "updated"]
    silence(desk, 'detector = "large_amount"', seconds=9000)
    for _ in range(10):
        desk.later(600)
    assert statuses(desk) == ["opened", "updated", "resolved"]


def test_a_case_repeats_while_a_notified_alert_lasts_and_is_not_silenced(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD | {"repeat_interval": "10m", "send_resolved": True})
    desk.take(record(0))
    silence(desk, 'detector = "card_velocity"', seconds=90_000)
    desk.take(record(1, detector="card_velocity", title="Silenced"))
    desk.later(600)
    assert statuses(desk) == ["opened", "updated"], "the silence does not match the notified alert"
    desk.later(2000)
    desk.take(record(2, detector="card_velocity", title="Silenced"))
    desk.later(1000)
    for _ in range(4):
        desk.later(600)
    assert statuses(desk) == ["opened", "updated", "updated"], (
        "the notified alert has ended, and only silenced alerts last"
    )
    desk.later(600)
    assert statuses(desk) == ["opened", "updated", "updated", "resolved"]
    assert {notifications["title"] for notifications in desk.notifications()} == {"Large amount"}, (
        "nothing is said of silenced alerts"
    )


def test_the_end_of_a_case_is_notified_once_although_an_alert_in_it_is_silenced(desk: Desk, record: MakeRecord) -> None:
    take_one_and_silence_the_next(desk, record)
    desk.later(10_000)
    for _ in range(5):
        desk.later(300)
    assert statuses(desk) == ["opened", "resolved"]


def test_a_silenced_alert_is_notified_when_the_silence_ends_first(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD)
    silence(desk, 'detector = "large_amount"', seconds=450)
    desk.take(record(0, release="r1"), record(1, release="r2"))
    desk.later(300)
    assert desk.notifications() == []
    desk.later(300)
    (notification,) = desk.notifications()
    assert len(notification["alert_ids"]) == 2


def test_an_alert_that_is_silenced_until_its_end_is_never_notified(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route={"channels": ["ops"]})
    held = silence(desk, "entity = card:card-7", seconds=4000)
    desk.take(record(0), record(1, entity={"type": "card", "id": "card-8"}))
    for _ in range(20):
        desk.later(300)
    assert len(desk.notifications()) == 1
    assert "planned works" in str(held)
    assert desk.later(10_000) == 0, "its case is closed"


def test_a_silence_that_only_an_older_release_could_read_silences_nothing(desk: Desk, record: MakeRecord) -> None:
    silence(desk, "detector = large_amount")
    with desk.store.transaction() as t:
        t._connection.execute(tables.silences.update().values(matchers='["detector =~ \\"(?!small)large_amount\\""]'))
    desk.take(record())
    assert statuses(desk) == ["opened"]


def test_a_silence_can_be_ended(desk: Desk, record: MakeRecord) -> None:
    held = silence(desk, "severity >= high")
    desk.take(record(0))
    with desk.store.transaction() as t:
        assert t.silences.expire(held.id)
        assert not t.silences.expire(held.id)
    desk.later(300)
    assert len(desk.notifications()) == 1


def test_an_evaluation_that_comes_late_still_notifies(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD | {"group_wait": "30s"})
    desk.take(record(0))
    desk.later(100_000)
    assert len(desk.notifications()) == 1


INHIBIT = {"source_matchers": ["severity = critical"], "target_matchers": ["severity <= medium"], "equal": ["entity"]}


def test_an_alert_inhibits_those_that_equal_it(desk: Desk, record: MakeRecord) -> None:
    desk.routing(inhibit_rules=[INHIBIT])
    card_8 = {"type": "card", "id": "card-8"}
    desk.take(record(0, severity="low"), record(1, severity="critical"), record(2, severity="high"))
    desk.take(record(3, severity="medium"), record(4, severity="low", entity=card_8))
    assert [notifications["severity"] for notifications in desk.notifications()] == ["critical", "high", "low"]
    desk.later(3700)
    assert len(desk.notifications()) == 3, "they were over with the one that inhibited them"


def test_a_new_inhibition_covers_active_alerts_that_came_before_it(
    desk: Desk, record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lozenge_downstream.store.received_alerts.PAGE", 2)
    card_8, card_9 = ({"type": "card", "id": name} for name in ("card-8", "card-9"))
    desk.take(record(0, severity="critical", entity=card_8))
    desk.later(3000)
    desk.take(record(1, severity="critical"), record(2, severity="high"), *(record(n) for n in range(3, 7)))
    desk.routing(rate_limit={"alerts": 1})
    desk.take(record(7), record(8, severity="critical", entity=card_9))
    desk.later(1000)
    desk.routing(inhibit_rules=[INHIBIT])
    with desk.store.transaction(exclusive=True) as t:
        desk.pipeline.apply_new_inhibitions(set(), t)
    before = len(desk.notifications())
    desk.take(*(record(n, severity="low", entity=card) for n, card in ((10, card_8), (11, card_9))))
    assert len(desk.notifications()) == before + 2, "one alert that would inhibit is over, and one is rate_limited"
    desk.take(record(12, severity="low"))
    assert len(desk.notifications()) == before + 2
    desk.later(2601)
    assert len(desk.notifications()) == before + 3, "it inhibits as long as it lasts, and no longer"


def test_a_known_inhibition_is_not_computed_again(desk: Desk, record: MakeRecord) -> None:
    desk.routing(inhibit_rules=[INHIBIT])
    desk.take(record(0, severity="critical"))
    with desk.store.transaction(exclusive=True) as t:
        assert t.inhibitors.active_rules() == {rule_of(desk.pipeline.routing.inhibit_rules[0])}
        t._connection.execute(tables.inhibitors.delete())
        desk.pipeline.apply_new_inhibitions({rule_of(rule) for rule in desk.pipeline.routing.inhibit_rules}, t)
        assert t.inhibitors.active_rules() == set()
        desk.pipeline.apply_new_inhibitions(set(), t)
        assert len(t.inhibitors.active_rules()) == 1


def test_nothing_inhibits_itself_nor_each_other(desk: Desk, record: MakeRecord) -> None:
    desk.routing(
        inhibit_rules=[
            {"source_matchers": ["severity >= low"], "target_matchers": ["severity >= low"], "equal": ["entity"]}
        ]
    )
    desk.take(record(0), record(1))
    assert len(desk.notifications()) == 2


def test_a_route_is_muted_in_its_time_window(desk: Desk, record: MakeRecord) -> None:
    night = {"name": "night", "matchers": ["severity <= high"], "mute_time_intervals": ["sunday"]}
    desk.routing(time_intervals={"sunday": {"weekdays": ["sun"], "times": ["00:00-12:30"]}}, route={"routes": [night]})
    desk.take(record(0), record(1, severity="critical"))
    assert [notifications["severity"] for notifications in desk.notifications()] == ["critical"]
    for _ in range(7):
        desk.later(300)
    assert [notifications["severity"] for notifications in desk.notifications()] == ["critical", "high"]


@pytest.mark.parametrize("equal", [[], ["card_brand"]])
def test_an_alert_that_matches_both_sides_of_a_rule_does_not_inhibit_itself(
    desk: Desk, record: MakeRecord, equal: list[str]
) -> None:
    rule = {"source_matchers": ["severity >= high"], "target_matchers": ["severity >= low"], "equal": equal}
    desk.routing(inhibit_rules=[rule])
    desk.take(record(0), record(1, entity={"type": "card", "id": "card-8"}))
    assert len(desk.notifications()) == 2
    desk.take(record(2, severity="low"))
    assert len(desk.notifications()) == 2, "two alerts without a label are equal in it"
