"""The stages by which a due case is notified: eligible, muted, limited, rendered, recorded.

Each takes what the one before gave. They are the stages of Alertmanager's notification pipeline.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from lozenge_downstream.model import Case, Evaluation, Outgoing, PublishedAlert, Status
from lozenge_downstream.pipeline.mute import Mutes, equals_of
from lozenge_downstream.pipeline.notify_policy import MAX_NOTIFIED, Mute, evaluate, repeats_at, resolves_at
from lozenge_downstream.routing.config import Routing
from lozenge_downstream.routing.tree import Route
from lozenge_downstream.store import Transaction


@dataclass(slots=True)
class Group:
    """A case in process: its new alerts, those that wait and why, and the alerts that a repeat may be about."""

    case: Case
    route: Route
    is_new: bool
    joining: list[PublishedAlert] = field(default_factory=list)
    waiting: list[PublishedAlert] = field(default_factory=list)
    were_muted: dict[str, str] = field(default_factory=dict)
    repeatable: list[PublishedAlert] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Limited:
    """What is notified of a group now, and as what. Without a `status` nothing is.

    `muted` has the reason for each alert that is not notified. `repeated` is an alert that a repeat is about.
    """

    status: Status | None
    notified: Sequence[PublishedAlert]
    muted: Mapping[str, str]
    repeated: PublishedAlert | None


def eligible(groups: Sequence[Group], t: Transaction) -> list[Group]:
    """The groups that are due, each with its alerts in the store."""
    due = [group for group in groups if group.case.next_evaluation_at <= t.now]
    for group in due:
        if group.is_new:
            continue
        group.waiting, group.were_muted = t.cases.waiting(group.case.id)
        if (again := repeats_at(group.case, group.route)) is not None and again <= t.now:
            notified_alerts = t.cases.notified_alerts(group.case.id, MAX_NOTIFIED)
            group.repeatable = [a for a in notified_alerts if resolves_at(group.route, a) > t.now]
    return due


def muted(due: Sequence[Group], routing: Routing, t: Transaction) -> Callable[[Group], Mute]:
    """By group, why an alert is not notified now: a silence, an inhibition, or a time interval of the route."""
    alerts = [a for group in due for a in (*group.waiting, *group.joining, *group.repeatable)]
    rules = routing.inhibit_rules
    inhibitors = t.inhibitors.active(equals_of(rules, alerts)) if rules and alerts else {}
    mutes = Mutes(t.silences.active() if alerts else [], rules, inhibitors)
    at = datetime.fromtimestamp(t.now, UTC)

    def of(group: Group) -> Mute:
        interval = group.route.muted_by(routing.time_intervals, at)
        return lambda alert: mutes(alert) or interval

    return of


def limited(group: Group, mute: Mute, now: float) -> Limited:
    """Which alerts are notified now, at most MAX_NOTIFIED. The case is changed to its state afterwards."""
    repeated = next((alert for alert in group.repeatable if not mute(alert)), None)
    alerts = [*group.waiting, *group.joining]
    repeats = repeated is not None
    status, notified, why = evaluate(group.case, group.route, alerts, set(group.were_muted), mute, now, repeats=repeats)
    return Limited(status, notified, why, repeated)


def rendered(
    group: Group, found: Limited, render: Callable[..., Outgoing], routing: Routing, t: Transaction
) -> Evaluation:
    """The notification of a group, and the channels to which it goes."""
    if found.status is None:
        return Evaluation(group.case, found.notified, found.muted)
    latest = found.notified[-1] if found.notified else found.repeated or t.cases.notified_alerts(group.case.id, 1)[0]
    sent = render(group.case, group.route, found.status, found.notified, latest, t.outbox.number, t.now)
    return Evaluation(group.case, found.notified, found.muted, sent, _channels(group, found.status, routing, t))


def recorded(
    groups: Sequence[Group], evaluations: Mapping[str, Evaluation], dead_letters: Sequence[Outgoing], t: Transaction
) -> None:
    """Writes cases, alerts, notifications and deliveries; `evaluations` are those of the due cases, by id."""
    outgoing = list(dead_letters)
    deliveries: list[tuple[str, Sequence[str]]] = []
    later: list[str] = []
    joined: list[tuple[str, str, str | None, str | None]] = []
    for group in groups:
        notified: dict[str, str] = {}
        evaluation = evaluations.get(group.case.id, Evaluation(group.case))
        if (sent := evaluation.outgoing) is not None:
            outgoing.append(sent)
            deliveries.append((sent.id, evaluation.channels))
            later += [sent.id] if group.case.notification_count > 1 else []
            notified = {alert.id: sent.id for alert in evaluation.notified}
        joined += [(group.case.id, a.id, notified.get(a.id), evaluation.muted.get(a.id)) for a in group.joining]
        _record_waiting(group, notified, evaluation.muted, t)
    t.cases.create(group.case for group in groups if group.is_new)
    t.cases.update(group.case for group in groups if not group.is_new)
    t.cases.add_alerts(joined)
    t.outbox.send(outgoing)
    t.deliveries.add(deliveries)
    t.deliveries.line_up(later)


def _channels(group: Group, status: Status, routing: Routing, t: Transaction) -> Sequence[str]:
    """The channels of its route. The end of a case also goes to all other channels that were notified of it."""
    if status is not Status.RESOLVED:
        return group.route.channels
    notified = [name for name in t.cases.notified_channels(group.case.id) if name in routing.channels]
    of_route = group.route.channels if group.route.name == group.case.route else ()
    return tuple(dict.fromkeys([*of_route, *notified]))


def _record_waiting(group: Group, notified: Mapping[str, str], why: Mapping[str, str], t: Transaction) -> None:
    waited = {alert.id for alert in group.waiting}
    t.cases.record_notified(group.case.id, {a: id for a, id in notified.items() if a in waited})
    t.cases.record_muted(group.case, {a: r for a, r in why.items() if a in waited}, group.were_muted)
    t.cases.record_mutes(group.case.route, {a: r for a, r in why.items() if a not in waited})
