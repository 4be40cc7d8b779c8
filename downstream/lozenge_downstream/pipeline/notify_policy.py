"""Whether a case is notified now, with which alerts, and when it is evaluated next. Pure: the clock is an argument."""

from collections.abc import Callable, Sequence

from lozenge.contracts.ids import uuid5
from lozenge_downstream.model import Case, PublishedAlert, Status
from lozenge_downstream.routing.tree import Route

MAX_NOTIFIED = 1_000
"""Alerts in one notification; the next notification has the rest, at once."""
MIN_EVALUATION_SECONDS = 1.0
"""The shortest time between two evaluations of muted alerts."""
Mute = Callable[[PublishedAlert], str]
"""Why an alert is muted; "" if it is not."""


def open_case(route: Route, alert: PublishedAlert) -> Case:
    """The case that `alert` opens. Its id is the same on every run."""
    group = route.group_of(alert.id, alert.labels)
    id = uuid5("case", route.name, *(part for pair in sorted(group.items()) for part in pair), alert.id)
    return Case(
        id=id,
        route=route.name,
        group=group,
        opened_at=alert.received_at,
        next_evaluation_at=alert.received_at + route.group_wait.total_seconds(),
        resolves_at=alert.received_at,
    )


def join(case: Case, route: Route, alert: PublishedAlert) -> None:
    """Adds an alert to a case: it resolves no sooner than the alert, and respects `group_interval`.

    The next evaluation was set for the end or a repeat of the case. The alert moves it forward.
    """
    case.resolves_at = max(case.resolves_at, resolves_at(route, alert))
    # if both are equal, the rest of many alerts is to be notified at once
    if case.last_evaluated_at is not None and case.last_evaluated_at < case.next_evaluation_at:
        after_interval = case.last_evaluated_at + route.group_interval.total_seconds()
        case.next_evaluation_at = max(after_interval, alert.received_at)


def resolves_at(route: Route, alert: PublishedAlert) -> float:
    """When an alert resolves."""
    return alert.received_at + route.resolve_timeout.total_seconds()


def evaluate(
    case: Case,
    route: Route,
    waiting: Sequence[PublishedAlert],
    were_muted: set[str],
    mute: Mute,
    now: float,
    *,
    repeats: bool,
) -> tuple[Status | None, list[PublishedAlert], dict[str, str]]:
    """The status to notify (None: nothing), the alerts to notify, and why each other alert is muted.

    `waiting` are the alerts of the case that were never notified, `were_muted` the ids of those that an earlier
    evaluation muted. An alert that stays muted until it resolves is never notified; one that is evaluated for the
    first time may be resolved already. Without `repeats` the case is not notified again without new alerts. The
    case is changed to its state after the evaluation.
    """
    notified: list[PublishedAlert] = []
    muted: dict[str, str] = {}
    for alert in waiting:
        if alert.id in were_muted and resolves_at(route, alert) <= now:
            continue
        if reason := mute(alert):
            muted[alert.id] = reason
        else:
            notified.append(alert)
    notified, rest = notified[:MAX_NOTIFIED], notified[MAX_NOTIFIED:]
    status = _status(case, route, notified, bool(muted), repeats, now)
    _schedule(case, route, notified, bool(muted), status, now)
    if rest:
        case.closed, case.next_evaluation_at = False, now
    return status, notified, muted


def repeats_at(case: Case, route: Route) -> float | None:
    """When a case is notified again without new alerts; None if never."""
    if case.notified_at is None or route.repeat_interval is None:
        return None
    return case.notified_at + route.repeat_interval.total_seconds()


def _status(
    case: Case, route: Route, notified: Sequence[PublishedAlert], muted: bool, repeats: bool, now: float
) -> Status | None:
    if notified:
        return Status.OPENED if case.notified_at is None else Status.UPDATED
    if case.notified_at is None:
        return None
    if now >= case.resolves_at:
        return Status.RESOLVED if route.send_resolved and not muted else None
    again = repeats_at(case, route)
    return Status.UPDATED if repeats and again is not None and now >= again else None


def _schedule(
    case: Case, route: Route, notified: Sequence[PublishedAlert], muted: bool, status: Status | None, now: float
) -> None:
    case.last_evaluated_at = now
    if status is not None:
        case.notified_at = now
        case.notification_count += 1
    for alert in notified:
        case.include(alert)
    again, is_resolved = repeats_at(case, route), now >= case.resolves_at
    to_be_resolved = route.send_resolved and case.notified_at is not None and status is not Status.RESOLVED
    case.closed = not muted and not to_be_resolved and (is_resolved or (route.alone and again is None))
    evaluations = [] if muted and is_resolved else [case.resolves_at]
    later = now + max(route.group_interval.total_seconds(), MIN_EVALUATION_SECONDS)
    if muted:
        evaluations.append(later)
    if again is not None and not is_resolved:
        evaluations.append(again if again > now else later)
    case.next_evaluation_at = min(evaluations)
