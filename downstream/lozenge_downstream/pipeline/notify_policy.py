"""Whether a case is told now, what of it, and when to look again. Pure: clock and memory come in as arguments."""

from collections.abc import Callable, Sequence

from lozenge.contracts.ids import uuid5
from lozenge_downstream.model import Alert, Case, Status
from lozenge_downstream.routing.tree import Route

MOST = 1_000
"""Of the alerts that one notification tells; the next one tells the rest at once."""
LEAST_SECONDS = 1.0
"""Between two looks at what is muted."""
Mute = Callable[[Alert], str]
"""Why an alert is not told now; "" if it is."""


def open_case(route: Route, alert: Alert) -> Case:
    """The case that `alert` opens; its id is the same on every run."""
    group = route.group_of(alert.id, alert.labels)
    id = uuid5("case", route.name, *(part for pair in sorted(group.items()) for part in pair), alert.id)
    return Case(
        id=id,
        route=route.name,
        group=group,
        opened_at=alert.received_at,
        due_at=alert.received_at + route.group_wait.total_seconds(),
        over_at=alert.received_at,
    )


def join(case: Case, route: Route, alert: Alert) -> None:
    """Takes one more alert into a case: it lasts as long as that, and is told no more often than it may.

    Its end and its next repeat are no reason any more to look at it before that.
    """
    case.over_at = max(case.over_at, over_at(route, alert))
    if case.looked_at is not None and case.looked_at < case.due_at:  # else the rest of many alerts is to be told
        case.due_at = max(case.looked_at + route.group_interval.total_seconds(), alert.received_at)


def over_at(route: Route, alert: Alert) -> float:
    """When an alert counts as over."""
    return alert.received_at + route.resolve_after.total_seconds()


def look(
    case: Case,
    route: Route,
    waiting: Sequence[Alert],
    were_muted: set[str],
    mute: Mute,
    now: float,
    *,
    repeats: bool,
) -> tuple[Status | None, list[Alert], dict[str, str]]:
    """What to say of a case that is due, the alerts that this tells, and why each other one is not told.

    `waiting` are its alerts that were never told, `were_muted` the ids of those that an earlier look did not
    tell. One that was muted until it was over is not told any more; one that nobody looked at always is.
    Without `repeats` it is not told again without news. The case is changed to how it stands afterwards.
    """
    told: list[Alert] = []
    muted: dict[str, str] = {}
    for alert in waiting:
        if alert.id in were_muted and over_at(route, alert) <= now:
            continue
        if reason := mute(alert):
            muted[alert.id] = reason
        else:
            told.append(alert)
    told, rest = told[:MOST], told[MOST:]
    status = _status(case, route, told, bool(muted), repeats, now)
    _go_on(case, route, told, bool(muted), status, now)
    if rest:
        case.closed, case.due_at = False, now
    return status, told, muted


def repeat_at(case: Case, route: Route) -> float | None:
    """When a case is told again without news; None if never."""
    if case.told_at is None or route.repeat_interval is None:
        return None
    return case.told_at + route.repeat_interval.total_seconds()


def _status(case: Case, route: Route, told: Sequence[Alert], muted: bool, repeats: bool, now: float) -> Status | None:
    if told:
        return Status.OPENED if case.told_at is None else Status.UPDATED
    if case.told_at is None:
        return None
    if now >= case.over_at:
        return Status.RESOLVED if route.send_resolved and not muted else None
    again = repeat_at(case, route)
    return Status.UPDATED if repeats and again is not None and now >= again else None


def _go_on(case: Case, route: Route, told: Sequence[Alert], muted: bool, status: Status | None, now: float) -> None:
    case.looked_at = now
    if status is not None:
        case.told_at = now
        case.tellings += 1
    for alert in told:
        case.include(alert)
    again, is_over = repeat_at(case, route), now >= case.over_at
    to_be_resolved = route.send_resolved and case.told_at is not None and status is not Status.RESOLVED
    case.closed = not muted and not to_be_resolved and (is_over or (route.alone and again is None))
    looks = [] if muted and is_over else [case.over_at]
    later = now + max(route.group_interval.total_seconds(), LEAST_SECONDS)
    if muted:
        looks.append(later)
    if again is not None and not is_over:
        looks.append(again if again > now else later)
    case.due_at = min(looks)
