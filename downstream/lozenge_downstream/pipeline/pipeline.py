"""The notifier's stages in their order, for one batch in one transaction of the store.

When records are received:  decode, deduplicate, enrich, rate-limit     (ingest.decode)
                            route, group                                (here, by routing.tree)
When a case is due:         silence, inhibit, time intervals            (mute)
                            notify or wait                              (notify_policy)
                            render                                      (render)
                            record                                      (store)

A case whose route has no `group_wait` is due when it opens, so that both happen in one transaction.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from lozenge.contracts.schemas import Schema
from lozenge.contracts.topics import Topics
from lozenge_downstream.ingest.decode import AlertDecoder, Decoded
from lozenge_downstream.model import (
    Case,
    Classification,
    Evaluation,
    Outgoing,
    PublishedAlert,
    ReceivedAlert,
    ReceivedRecord,
    Status,
)
from lozenge_downstream.pipeline.detector_alarms import rate_limit_alarms, silence_alarms
from lozenge_downstream.pipeline.mute import Mutes, equal_of, equals_of, inhibits, is_two_sided, rule_of
from lozenge_downstream.pipeline.notify_policy import (
    MAX_NOTIFIED,
    Mute,
    evaluate,
    join,
    open_case,
    repeats_at,
    resolves_at,
)
from lozenge_downstream.pipeline.render import Renderer
from lozenge_downstream.routing.config import InhibitRule, Routing
from lozenge_downstream.routing.tree import Route
from lozenge_downstream.store import Transaction
from lozenge_downstream.store.cases import key_of

BASELINE_DAYS = 14


@dataclass(slots=True)
class _Group:
    """A case in process: its new alerts, those that wait and why, and the alerts that a repeat may be about."""

    case: Case
    route: Route
    is_new: bool
    joining: list[PublishedAlert] = field(default_factory=list)
    waiting: list[PublishedAlert] = field(default_factory=list)
    were_muted: dict[str, str] = field(default_factory=dict)
    repeatable: list[PublishedAlert] = field(default_factory=list)


class Pipeline:
    """All stages. `routing` may be replaced between two calls."""

    def __init__(
        self,
        routing: Routing,
        topics: Topics,
        learn: Callable[[], Iterable[Schema]] = tuple,
        link: Callable[[str], str] | None = None,
    ) -> None:
        self.routing, self.topics = routing, topics
        self._decoder = AlertDecoder(topics, learn)
        self._render = Renderer(topics, link)

    def decode(self, records: Sequence[ReceivedRecord]) -> list[Decoded]:
        """The first stage, which needs no store."""
        return self._decoder.decode(records)

    def receive(self, decoded: Sequence[Decoded], t: Transaction) -> list[ReceivedAlert]:
        """Classifies and records a batch, and notifies the cases that need not wait."""
        limit = self.routing.rate_limit

        def remaining(detectors: Sequence[str]) -> dict[str, int]:
            accepted = t.received_alerts.accepted_within(detectors, limit.within.total_seconds())
            return {detector: limit.alerts - number for detector, number in accepted.items()}

        received = self._decoder.classify(
            decoded, seen=t.received_alerts.seen, remaining=remaining, number=t.outbox.number, now=t.now
        )
        t.received_alerts.record(received)
        dead_letters = [r.dead_letter for r in received if r.dead_letter]
        accepted = [r.alert for r in received if r.alert and r.outcome is Classification.ACCEPTED]
        limited = Counter(r.alert.detector for r in received if r.alert and r.outcome is Classification.RATE_LIMITED)
        alarms = t.received_alerts.add_alarms(rate_limit_alarms(limited, t.now))
        self.process([*accepted, *alarms], t, dead_letters)
        return received

    def raise_silence_alarms(self, t: Transaction) -> None:
        """Raises an alarm for each silent detector. Call it when all alerts are read."""
        if self.routing.detector_alarms.silent:
            self.process(
                t.received_alerts.add_alarms(silence_alarms(t.received_alerts.baselines(BASELINE_DAYS), t.now)), t
            )

    def apply_new_inhibitions(self, known: Collection[str], t: Transaction) -> None:
        """Lets active alerts inhibit by the rules that are not among `known` (`rule_of`)."""
        rules = [rule for rule in self.routing.inhibit_rules if rule_of(rule) not in known]
        if not rules:
            return
        longest = max(placed.route.resolve_timeout for placed in self.routing.route.walk())
        self._record_inhibitors(t.received_alerts.since(t.now - longest.total_seconds()), rules, t)

    def process(self, alerts: Sequence[PublishedAlert], t: Transaction, dead_letters: Sequence[Outgoing] = ()) -> None:
        """Routes and groups accepted alerts, notifies the cases that need not wait, and sends `dead_letters`."""
        groups = self._group(alerts, t)
        self._notify(groups, t, dead_letters)

    def evaluate_due(self, t: Transaction, limit: int) -> int:
        """Evaluates the cases that are due, `limit` at most; returns how many."""
        groups = [_Group(case, self.routing.route.named(case.route), is_new=False) for case in t.cases.due(limit)]
        if groups:
            self._notify(groups, t)
        return len(groups)

    def _group(self, alerts: Sequence[PublishedAlert], t: Transaction) -> list[_Group]:
        routed = [(alert, self.routing.route.taking(alert.labels)) for alert in alerts]
        self._record_inhibitors(alerts, self.routing.inhibit_rules, t)
        keyed = [
            (key_of(route.name, route.group_of(alert.id, alert.labels)), route, alert)
            for alert, routes in routed
            for route in routes
        ]
        open_ = t.cases.open(sorted({key for key, route, _ in keyed if not route.alone}))
        groups: dict[str, _Group] = {}
        for key, route, alert in keyed:
            if (group := groups.get(key)) is None:
                known = open_.get(key)
                group = groups[key] = _Group(known or open_case(route, alert), route, is_new=known is None)
            join(group.case, route, alert)
            group.joining.append(alert)
        return list(groups.values())

    def _record_inhibitors(
        self, alerts: Iterable[PublishedAlert], rules: Sequence[InhibitRule], t: Transaction
    ) -> None:
        active: dict[tuple[str, str, bool], tuple[float, str]] = {}
        for alert in alerts:
            for rule in rules:
                if inhibits(rule, alert.labels):
                    until = max(resolves_at(route, alert) for route in self.routing.route.taking(alert.labels))
                    key = rule_of(rule), equal_of(rule, alert.labels), is_two_sided(rule, alert.labels)
                    active[key] = max(active.get(key, (until, alert.id)), (until, alert.id))
        t.inhibitors.record(active)

    def _notify(self, groups: Sequence[_Group], t: Transaction, dead_letters: Sequence[Outgoing] = ()) -> None:
        due = [group for group in groups if group.case.next_evaluation_at <= t.now]
        for group in due:
            if not group.is_new:
                group.waiting, group.were_muted = t.cases.waiting(group.case.id)
                if (again := repeats_at(group.case, group.route)) is not None and again <= t.now:
                    notified_alerts = t.cases.notified_alerts(group.case.id, MAX_NOTIFIED)
                    group.repeatable = [a for a in notified_alerts if resolves_at(group.route, a) > t.now]
        mutes = self._mutes([a for g in due for a in (*g.waiting, *g.joining, *g.repeatable)], t)
        outgoing = list(dead_letters)
        deliveries: list[tuple[str, Sequence[str]]] = []
        later: list[str] = []
        joined: list[tuple[str, str, str | None, str | None]] = []
        for group in groups:
            notified: dict[str, str] = {}
            is_due = group.case.next_evaluation_at <= t.now
            evaluation = self._evaluate(group, mutes, t) if is_due else Evaluation(group.case)
            if (sent := evaluation.outgoing) is not None:
                outgoing.append(sent)
                deliveries.append((sent.id, evaluation.channels))
                later += [sent.id] if group.case.notification_count > 1 else []
                notified = {alert.id: sent.id for alert in evaluation.notified}
            joined += [(group.case.id, a.id, notified.get(a.id), evaluation.muted.get(a.id)) for a in group.joining]
            self._record_waiting(group, notified, evaluation.muted, t)
        t.cases.create(group.case for group in groups if group.is_new)
        t.cases.update(group.case for group in groups if not group.is_new)
        t.cases.add_alerts(joined)
        t.outbox.send(outgoing)
        t.deliveries.add(deliveries)
        t.deliveries.line_up(later)

    def _evaluate(self, group: _Group, mutes: Mutes, t: Transaction) -> Evaluation:
        interval = group.route.muted_by(self.routing.time_intervals, datetime.fromtimestamp(t.now, UTC))
        waiting = [*group.waiting, *group.joining]
        mute: Mute = lambda alert: mutes(alert) or interval  # noqa: E731
        repeated = next((alert for alert in group.repeatable if not mute(alert)), None)
        status, notified, muted = evaluate(
            group.case, group.route, waiting, set(group.were_muted), mute, t.now, repeats=repeated is not None
        )
        if status is None:
            return Evaluation(group.case, notified, muted)
        sent = self._rendered(group, status, notified, repeated, t)
        return Evaluation(group.case, notified, muted, sent, self._channels(group, status, t))

    def _channels(self, group: _Group, status: Status, t: Transaction) -> Sequence[str]:
        """The channels of its route. The end of a case also goes to all other channels that were notified of it."""
        if status is not Status.RESOLVED:
            return group.route.channels
        notified = [name for name in t.cases.notified_channels(group.case.id) if name in self.routing.channels]
        of_route = group.route.channels if group.route.name == group.case.route else ()
        return tuple(dict.fromkeys([*of_route, *notified]))

    def _rendered(
        self,
        group: _Group,
        status: Status,
        notified: Sequence[PublishedAlert],
        repeated: PublishedAlert | None,
        t: Transaction,
    ) -> Outgoing:
        latest = notified[-1] if notified else repeated or t.cases.notified_alerts(group.case.id, 1)[0]
        return self._render(group.case, group.route, status, notified, latest, t.outbox.number, t.now)

    def _record_waiting(
        self, group: _Group, notified: Mapping[str, str], muted: Mapping[str, str], t: Transaction
    ) -> None:
        waited = {alert.id for alert in group.waiting}
        t.cases.record_notified(group.case.id, {a: id for a, id in notified.items() if a in waited})
        t.cases.record_muted(group.case, {a: r for a, r in muted.items() if a in waited}, group.were_muted)
        t.cases.record_mutes(group.case.route, {a: r for a, r in muted.items() if a not in waited})

    def _mutes(self, alerts: Sequence[PublishedAlert], t: Transaction) -> Mutes:
        rules = self.routing.inhibit_rules
        inhibitors = t.inhibitors.active(equals_of(rules, alerts)) if rules and alerts else {}
        return Mutes(t.silences.active() if alerts else [], rules, inhibitors)
