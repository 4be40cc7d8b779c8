"""Each stage of a notification by itself: eligible, muted, limited, rendered, recorded."""

from collections.abc import Callable
from typing import Any

import pytest

from lozenge_downstream.model import Evaluation, PublishedAlert, ReceivedRecord, Status
from lozenge_downstream.pipeline.notify_policy import join, open_case
from lozenge_downstream.pipeline.stages import Group, Limited, eligible, limited, muted, recorded, rendered
from tests.downstream.conftest import Desk
from tests.downstream.pipeline.cases import silence

MakeRecord = Callable[..., ReceivedRecord]
BY_CARD = {"group_by": ["entity"], "group_interval": "5m", "resolve_timeout": "1h", "channels": ["ops"]}


def received(desk: Desk, record: ReceivedRecord) -> PublishedAlert:
    """The alert of a record, as the first stages make it; it is in the store, and its case is not yet notified."""
    [taken] = desk.take(record)
    assert taken.alert is not None
    return taken.alert


def group_of(desk: Desk, alert: PublishedAlert) -> Group:
    """A case that this alert opens."""
    [route] = desk.pipeline.routing.route.taking(alert.labels)
    case = open_case(route, alert)
    join(case, route, alert)
    return Group(case, route, is_new=True, joining=[alert])


def stored(desk: Desk) -> Group:
    """The one case in the store that is due."""
    with desk.store.reading() as t:
        [case] = t.cases.due(10)
    return Group(case, desk.pipeline.routing.route.named(case.route), is_new=False)


def nobody(_: PublishedAlert) -> str:
    return ""


def test_a_group_is_eligible_once_its_case_is_due(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD | {"group_wait": "30s"})
    group = group_of(desk, received(desk, record()))
    with desk.store.reading() as t:
        assert eligible([group], t) == []
    desk.now += 30
    with desk.store.reading() as t:
        assert eligible([group], t) == [group]
    assert group.waiting == [], "what a new case has is what joins it"


def test_an_eligible_case_has_its_waiting_alerts_and_why_they_were_muted(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD)
    silence(desk, 'detector = "large_amount"')
    alert = received(desk, record())
    desk.now += 300
    group = stored(desk)
    with desk.store.reading() as t:
        assert eligible([group], t) == [group]
    assert [each.id for each in group.waiting] == [alert.id]
    assert list(group.were_muted) == [alert.id]
    assert group.repeatable == []


def test_an_eligible_case_that_repeats_has_its_notified_alerts_that_are_active(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD | {"repeat_interval": "20m"})
    alert = received(desk, record())
    desk.now += 1200
    group = stored(desk)
    with desk.store.reading() as t:
        eligible([group], t)
    assert [each.id for each in group.repeatable] == [alert.id]
    assert group.waiting == []


def test_an_alert_is_muted_by_a_silence_or_by_a_time_interval_of_its_route(desk: Desk, record: MakeRecord) -> None:
    sunday = {"time_intervals": {"sunday": {"weekdays": ["sun"]}}}
    desk.routing(route=BY_CARD)
    alert = received(desk, record())
    for routing, silenced in ((sunday, False), ({}, True), ({}, False)):
        desk.routing(**routing, route=BY_CARD | ({"mute_time_intervals": ["sunday"]} if routing else {}))
        if silenced:
            held = silence(desk, 'detector = "large_amount"', seconds=60)
        group = group_of(desk, alert)
        with desk.store.reading() as t:
            why = muted([group], desk.pipeline.routing, t)(group)(alert)
        assert bool(why) is (bool(routing) or silenced)
        if silenced:
            assert held.id in why
            desk.now += 61


def test_a_group_repeats_with_its_first_alert_that_is_not_muted(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD | {"repeat_interval": "20m"})
    alerts = [received(desk, record(number)) for number in range(2)]
    group = group_of(desk, alerts[0])
    group.joining, group.case.notified_at = [], desk.now - 1200
    group.repeatable = alerts
    found = limited(group, lambda alert: "silence" if alert.id == alerts[0].id else "", desk.now)
    assert (found.status, found.notified, found.repeated) == (Status.UPDATED, [], alerts[1])
    group.case.notified_at = desk.now - 1200
    assert limited(group, lambda alert: "silence", desk.now).status is None


def test_waiting_and_joining_alerts_are_notified_together(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD)
    first, second = (received(desk, record(number)) for number in range(2))
    group = group_of(desk, second)
    group.waiting = [first]
    found = limited(group, nobody, desk.now)
    assert (found.status, found.notified, dict(found.muted)) == (Status.OPENED, [first, second], {})


def rendering(calls: list[Any]) -> Callable[..., Any]:
    def render(*given: Any) -> Any:
        calls.append(given)
        return "rendered"

    return render


def test_nothing_is_rendered_without_a_status(desk: Desk, record: MakeRecord) -> None:
    group, calls = group_of(desk, received(desk, record())), list[Any]()
    with desk.store.reading() as t:
        found = rendered(group, Limited(None, [], {"a": "why"}, None), rendering(calls), desk.pipeline.routing, t)
    assert (found.outgoing, found.channels, found.muted, calls) == (None, (), {"a": "why"}, [])


@pytest.mark.parametrize("status", [Status.OPENED, Status.UPDATED])
def test_a_notification_goes_to_the_channels_of_its_route(desk: Desk, record: MakeRecord, status: Status) -> None:
    desk.routing(route=BY_CARD)
    alert, calls = received(desk, record()), list[Any]()
    with desk.store.reading() as t:
        found = rendered(
            group_of(desk, alert), Limited(status, [alert], {}, None), rendering(calls), desk.pipeline.routing, t
        )
    assert [found.outgoing, *found.channels] == ["rendered", "ops"]
    assert calls[0][2:5] == (status, [alert], alert)


def test_a_notification_of_no_new_alert_is_about_the_repeated_one_or_the_latest(desk: Desk, record: MakeRecord) -> None:
    desk.routing(channels={"ops": {"type": "kafka", "topic": "ops"}}, route=BY_CARD | {"send_resolved": True})
    calls = list[Any]()
    desk.take(record(0), record(1))
    desk.now += 3600
    group = stored(desk)
    with desk.store.reading() as t:
        latest, earlier = t.cases.notified_alerts(group.case.id, 2)
        rendered(group, Limited(Status.UPDATED, [], {}, earlier), rendering(calls), desk.pipeline.routing, t)
        found = rendered(group, Limited(Status.RESOLVED, [], {}, None), rendering(calls), desk.pipeline.routing, t)
    assert [each[4].id for each in calls] == [earlier.id, latest.id]
    assert found.channels == ("ops",)


def test_what_is_recorded_of_a_muted_case_is_why_and_no_notification(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD | {"group_wait": "30s"})
    alert = received(desk, record())
    desk.now += 30
    group = stored(desk)
    with desk.store.transaction(exclusive=True) as t:
        eligible([group], t)
        group.case.next_evaluation_at = desk.now + 300
        recorded([group], {group.case.id: Evaluation(group.case, muted={alert.id: "silence s1"})}, [], t)
    with desk.store.reading() as t:
        assert t.cases.due(10) == []
        assert t.cases.waiting(group.case.id).muted == {alert.id: "silence s1"}
    assert desk.notifications() == []


def test_a_group_that_is_not_due_is_recorded_with_the_alerts_that_joined_it(desk: Desk, record: MakeRecord) -> None:
    alert = received(desk, record(0))
    desk.routing(route=BY_CARD | {"name": "cards", "group_wait": "30s"})
    group = group_of(desk, alert)
    with desk.store.transaction(exclusive=True) as t:
        recorded([group], {}, [], t)
    with desk.store.reading() as t:
        assert [each.id for each in t.cases.waiting(group.case.id).alerts] == [alert.id]
