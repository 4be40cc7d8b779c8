"""When a case is notified, with which alerts, and when it is evaluated next; without a store."""

from datetime import UTC, datetime
from typing import Any

import pytest

from lozenge_downstream.model import Case, PublishedAlert, Status
from lozenge_downstream.pipeline import notify_policy
from lozenge_downstream.pipeline.notify_policy import Mute, evaluate, join, open_case, repeats_at
from lozenge_downstream.routing.tree import Route

HOUR, FIVE_MINUTES = 3600.0, 300.0


def route(**fields: Any) -> Route:
    given = {"group_by": ["entity"], "group_interval": "5m", "resolve_timeout": "1h", **fields}
    return Route.model_validate(given)


def alert(id: str, received_at: float = 0.0) -> PublishedAlert:
    at = datetime.fromtimestamp(received_at, UTC)
    labels = {"entity": "card:7"}
    return PublishedAlert(
        id, "rule", "r1", "card", "7", "high", 0.9, "Seen", "", at, received_at, received_at, "", labels
    )


def unmuted(_: PublishedAlert) -> str:
    return ""


def by(reason: str, *ids: str) -> Mute:
    return lambda alert: reason if alert.id in ids else ""


def opened(by_route: Route, *alerts: PublishedAlert) -> Case:
    case = open_case(by_route, alerts[0])
    for each in alerts:
        join(case, by_route, each)
    return case


def test_a_case_has_the_same_id_on_every_run_and_another_one_in_another_route() -> None:
    case = open_case(route(), alert("a", 10))
    assert open_case(route(), alert("a", 99)).id == case.id
    assert open_case(route(name="other"), alert("a", 10)).id != case.id
    assert open_case(route(), alert("b", 10)).id != case.id


def test_a_case_is_due_after_its_group_wait_and_resolves_with_its_last_alert() -> None:
    case = opened(route(group_wait="30s"), alert("a", 10), alert("b", 20))
    assert (case.opened_at, case.next_evaluation_at, case.resolves_at) == (10, 40, 20 + HOUR)


def test_an_alert_that_joins_a_notified_case_brings_its_evaluation_forward_to_the_end_of_the_interval() -> None:
    case = opened(route(), alert("a"))
    evaluate(case, route(), [alert("a")], set(), unmuted, 0.0, repeats=False)
    assert case.next_evaluation_at == HOUR
    join(case, route(), alert("b", 20))
    assert case.next_evaluation_at == FIVE_MINUTES
    join(case, route(), alert("c", 400))
    assert case.next_evaluation_at == 400, "the interval is over"


def test_the_first_notification_opens_a_case_and_the_next_one_updates_it() -> None:
    case = opened(route(), alert("a"))
    status, notified, muted = evaluate(case, route(), [alert("a")], set(), unmuted, 5.0, repeats=False)
    assert (status, [each.id for each in notified], muted) == (Status.OPENED, ["a"], {})
    assert (case.notified_at, case.notification_count, case.scores) == (5.0, 1, {"rule": 0.9})
    join(case, route(), alert("b", 10))
    assert evaluate(case, route(), [alert("b", 10)], set(), unmuted, 305.0, repeats=False)[0] is Status.UPDATED
    assert case.notification_count == 2


def test_a_muted_alert_is_not_notified_and_is_evaluated_again_after_the_interval() -> None:
    case, alerts = opened(route(), alert("a"), alert("b")), [alert("a"), alert("b")]
    status, notified, muted = evaluate(case, route(), alerts, set(), by("silence", "a"), 0.0, repeats=False)
    assert (status, [each.id for each in notified], muted) == (Status.OPENED, ["b"], {"a": "silence"})
    assert (case.next_evaluation_at, case.closed) == (FIVE_MINUTES, False)


def test_alerts_that_are_all_muted_notify_nothing() -> None:
    case = opened(route(), alert("a"))
    assert evaluate(case, route(), [alert("a")], set(), by("silence", "a"), 0.0, repeats=False)[0] is None
    assert case.notified_at is None


def test_an_alert_that_was_muted_until_it_resolved_is_never_notified_but_a_late_one_is() -> None:
    late = HOUR + 1
    for were_muted, expected in (({"a"}, None), (set[str](), Status.OPENED)):
        case = opened(route(), alert("a"))
        assert evaluate(case, route(), [alert("a")], were_muted, unmuted, late, repeats=False)[0] is expected


@pytest.mark.parametrize(("send_resolved", "status"), [(True, Status.RESOLVED), (False, None)])
def test_the_end_of_a_case_is_notified_where_the_route_says_so(send_resolved: bool, status: Status | None) -> None:
    by_route = route(send_resolved=send_resolved)
    case = opened(by_route, alert("a"))
    evaluate(case, by_route, [alert("a")], set(), unmuted, 0.0, repeats=False)
    assert evaluate(case, by_route, [], set(), unmuted, HOUR, repeats=False)[0] is status
    assert case.closed


def test_a_case_that_was_never_notified_has_no_end_to_notify() -> None:
    by_route = route(send_resolved=True)
    case = opened(by_route, alert("a"))
    evaluate(case, by_route, [alert("a")], set(), by("silence", "a"), 0.0, repeats=False)
    assert evaluate(case, by_route, [alert("a")], {"a"}, unmuted, HOUR, repeats=False)[0] is None
    assert case.closed


def test_a_case_is_notified_again_only_if_it_repeats_and_its_time_has_come() -> None:
    by_route = route(repeat_interval="20m")
    case = opened(by_route, alert("a"))
    assert repeats_at(case, by_route) is None, "it was not notified yet"
    evaluate(case, by_route, [alert("a")], set(), unmuted, 0.0, repeats=False)
    assert repeats_at(case, by_route) == case.next_evaluation_at == 1200
    assert repeats_at(case, route()) is None
    assert evaluate(case, by_route, [], set(), unmuted, 1199.0, repeats=True)[0] is None
    assert evaluate(case, by_route, [], set(), unmuted, 1200.0, repeats=False)[0] is None, "all its alerts are muted"
    assert evaluate(case, by_route, [], set(), unmuted, 1200.0, repeats=True)[0] is Status.UPDATED


def test_what_one_notification_cannot_hold_is_due_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify_policy, "MAX_NOTIFIED", 2)
    alerts = [alert(id) for id in "abc"]
    case = opened(route(), *alerts)
    notified = evaluate(case, route(), alerts, set(), unmuted, 7.0, repeats=False)[1]
    assert [each.id for each in notified] == ["a", "b"]
    assert (case.next_evaluation_at, case.closed) == (7.0, False)


def test_a_case_of_one_alert_is_closed_once_it_is_notified() -> None:
    alone = Route.model_validate({"resolve_timeout": "1h"})
    case = opened(alone, alert("a"))
    evaluate(case, alone, [alert("a")], set(), unmuted, 0.0, repeats=False)
    assert case.closed
