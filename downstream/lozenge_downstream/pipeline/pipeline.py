"""The notifier's stages in their order, for one batch in one transaction of the store.

When records arrive:        decode, dedup, enrich, throttle     (arriving)
                            route, group                        (here, by routing.tree)
When a case is due:         silence, inhibit, keep quiet        (muting)
                            tell or wait                        (telling)
                            render                              (render)
                            record                              (store)

A case whose route waits for no company is due when it opens, so that both happen in one transaction.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from lozenge.contracts.schemas import Schema
from lozenge.contracts.topics import Topics
from lozenge_downstream.ingest.decode import Arriving, Decoded
from lozenge_downstream.model import Alert, Arrival, Case, Outcome, Outgoing, Record, Status, Telling
from lozenge_downstream.pipeline.detector_alarms import floods, silences
from lozenge_downstream.pipeline.mute import Mutes, equal_of, equals_of, inhibits, is_two_sided, rule_of
from lozenge_downstream.pipeline.notify_policy import MOST, Mute, join, look, open_case, over_at, repeat_at
from lozenge_downstream.pipeline.render import Renderer
from lozenge_downstream.routing.config import Inhibition, Routing
from lozenge_downstream.routing.tree import Route
from lozenge_downstream.store import Transaction
from lozenge_downstream.store.cases import key_of

BASELINE_DAYS = 14


@dataclass(slots=True)
class _Group:
    """A case in work: whether it is new, what joins it now, what waited in it and why, and what a repeat may be of."""

    case: Case
    route: Route
    is_new: bool
    joining: list[Alert] = field(default_factory=list)
    waiting: list[Alert] = field(default_factory=list)
    were_muted: dict[str, str] = field(default_factory=dict)
    repeatable: list[Alert] = field(default_factory=list)


class Pipeline:
    """All stages. `routing` may be exchanged between two calls."""

    def __init__(
        self,
        routing: Routing,
        topics: Topics,
        learn: Callable[[], Iterable[Schema]] = tuple,
        link: Callable[[str], str] | None = None,
    ) -> None:
        self.routing, self.topics = routing, topics
        self._arriving = Arriving(topics, learn)
        self._render = Renderer(topics, link)

    def decode(self, records: Sequence[Record]) -> list[Decoded]:
        """The first stage, which needs no store."""
        return self._arriving.decode(records)

    def arrive(self, decoded: Sequence[Decoded], t: Transaction) -> list[Arrival]:
        """Takes in what was read; tells what need not wait."""
        noise = self.routing.noise

        def room(detectors: Sequence[str]) -> dict[str, int]:
            raised = t.arrivals.raised(detectors, noise.within.total_seconds())
            return {detector: noise.alerts - number for detector, number in raised.items()}

        arrivals = self._arriving.judge(decoded, seen=t.arrivals.seen, room=room, number=t.outbox.number, now=t.now)
        t.arrivals.record(arrivals)
        letters = [a.letter for a in arrivals if a.letter]
        accepted = [a.alert for a in arrivals if a.alert and a.outcome is Outcome.ACCEPTED]
        parked = Counter(a.alert.detector for a in arrivals if a.alert and a.outcome is Outcome.PARKED)
        self.take([*accepted, *t.arrivals.raise_own(floods(parked, t.now))], t, letters)
        return arrivals

    def listen(self, t: Transaction) -> None:
        """Raises an alarm for each detector that has fallen silent; call it while nothing waits to be read."""
        if self.routing.noise.quiet:
            self.take(t.arrivals.raise_own(silences(t.arrivals.baselines(BASELINE_DAYS), t.now)), t)

    def catch_up(self, known: Collection[str], t: Transaction) -> None:
        """Lets alerts that came before and still last inhibit by the rules that are not among `known` (`rule_of`)."""
        rules = [rule for rule in self.routing.inhibit if rule_of(rule) not in known]
        if not rules:
            return
        longest = max(placed.route.resolve_after for placed in self.routing.route.walk())
        self._note_inhibitors(t.arrivals.since(t.now - longest.total_seconds()), rules, t)

    def take(self, alerts: Sequence[Alert], t: Transaction, letters: Sequence[Outgoing] = ()) -> None:
        """Routes and groups accepted alerts; tells what need not wait. `letters` go out beside."""
        groups = self._group(alerts, t)
        self._tell(groups, t, letters)

    def look(self, t: Transaction, limit: int) -> int:
        """Tells of the cases that are due, `limit` at most; how many it looked at."""
        groups = [_Group(case, self._route(case.route), is_new=False) for case in t.cases.due(limit)]
        if groups:
            self._tell(groups, t)
        return len(groups)

    def _group(self, alerts: Sequence[Alert], t: Transaction) -> list[_Group]:
        routed = [(alert, self.routing.route.taking(alert.labels)) for alert in alerts]
        self._note_inhibitors(alerts, self.routing.inhibit, t)
        placed = [
            (key_of(route.name, route.group_of(alert.id, alert.labels)), route, alert)
            for alert, routes in routed
            for route in routes
        ]
        open_ = t.cases.open(sorted({key for key, route, _ in placed if not route.alone}))
        groups: dict[str, _Group] = {}
        for key, route, alert in placed:
            if (group := groups.get(key)) is None:
                known = open_.get(key)
                group = groups[key] = _Group(known or open_case(route, alert), route, is_new=known is None)
            join(group.case, route, alert)
            group.joining.append(alert)
        return list(groups.values())

    def _note_inhibitors(self, alerts: Iterable[Alert], rules: Sequence[Inhibition], t: Transaction) -> None:
        lasting: dict[tuple[str, str, bool], tuple[float, str]] = {}
        for alert in alerts:
            for rule in rules:
                if inhibits(rule, alert.labels):
                    until = max(over_at(route, alert) for route in self.routing.route.taking(alert.labels))
                    place = rule_of(rule), equal_of(rule, alert.labels), is_two_sided(rule, alert.labels)
                    lasting[place] = max(lasting.get(place, (until, alert.id)), (until, alert.id))
        t.cases.inhibit(lasting)

    def _tell(self, groups: Sequence[_Group], t: Transaction, letters: Sequence[Outgoing] = ()) -> None:
        due = [group for group in groups if group.case.due_at <= t.now]
        for group in due:
            if not group.is_new:
                group.waiting, group.were_muted = t.cases.waiting(group.case.id)
                if (again := repeat_at(group.case, group.route)) is not None and again <= t.now:
                    told_of = t.cases.told_of(group.case.id, MOST)
                    group.repeatable = [a for a in told_of if over_at(group.route, a) > t.now]
        muting = self._muting([a for g in due for a in (*g.waiting, *g.joining, *g.repeatable)], t)
        outgoing = list(letters)
        deliveries: list[tuple[str, Sequence[str]]] = []
        later: list[str] = []
        members: list[tuple[str, str, str | None, str | None]] = []
        for group in groups:
            told: dict[str, str] = {}
            telling = self._look(group, muting, t) if group.case.due_at <= t.now else Telling(group.case)
            if (sent := telling.outgoing) is not None:
                outgoing.append(sent)
                deliveries.append((sent.id, telling.channels))
                later += [sent.id] if group.case.tellings > 1 else []
                told = {alert.id: sent.id for alert in telling.told}
            members += [(group.case.id, a.id, told.get(a.id), telling.muted.get(a.id)) for a in group.joining]
            self._note_waiting(group, told, telling.muted, t)
        t.cases.create(group.case for group in groups if group.is_new)
        t.cases.change(group.case for group in groups if not group.is_new)
        t.cases.add(members)
        t.outbox.send(outgoing)
        t.deliveries.add(deliveries)
        t.deliveries.line_up(later)

    def _look(self, group: _Group, muting: Mutes, t: Transaction) -> Telling:
        quiet = group.route.quiet(self.routing.windows, datetime.fromtimestamp(t.now, UTC))
        waiting = [*group.waiting, *group.joining]
        mute: Mute = lambda alert: muting(alert) or quiet  # noqa: E731
        repeated = next((alert for alert in group.repeatable if not mute(alert)), None)
        status, told, muted = look(
            group.case, group.route, waiting, set(group.were_muted), mute, t.now, repeats=repeated is not None
        )
        if status is None:
            return Telling(group.case, told, muted)
        sent = self._rendered(group, status, told, repeated, t)
        return Telling(group.case, told, muted, sent, self._channels(group, status, t))

    def _channels(self, group: _Group, status: Status, t: Transaction) -> Sequence[str]:
        """Those of its route; and the end of a case goes to all that were told of it, whatever the file says now."""
        if status is not Status.RESOLVED:
            return group.route.channels
        told = [name for name in t.cases.channels_of(group.case.id) if name in self.routing.channels]
        of_route = group.route.channels if group.route.name == group.case.route else ()
        return tuple(dict.fromkeys([*of_route, *told]))

    def _rendered(
        self, group: _Group, status: Status, told: Sequence[Alert], repeated: Alert | None, t: Transaction
    ) -> Outgoing:
        latest = told[-1] if told else repeated or t.cases.told_of(group.case.id, 1)[0]
        return self._render(group.case, group.route, status, told, latest, t.outbox.number, t.now)

    def _note_waiting(self, group: _Group, told: Mapping[str, str], muted: Mapping[str, str], t: Transaction) -> None:
        waited = {alert.id for alert in group.waiting}
        t.cases.told(group.case.id, {a: id for a, id in told.items() if a in waited})
        t.cases.muted(group.case, {a: r for a, r in muted.items() if a in waited}, group.were_muted)
        t.cases.note_muted(group.case.route, {a: r for a, r in muted.items() if a not in waited})

    def _muting(self, alerts: Sequence[Alert], t: Transaction) -> Mutes:
        rules = self.routing.inhibit
        inhibitors = t.cases.inhibitors(equals_of(rules, alerts)) if rules and alerts else {}
        return Mutes(t.silences.active() if alerts else [], rules, inhibitors)

    def _route(self, name: str) -> Route:
        """The route of this name; where a newer routing file has none, the root: better told to it than to nobody.

        Nobody knows any more whether the route that is gone told that a case is over: that is told then.
        """
        root = self.routing.route
        found = next((placed.route for placed in root.walk() if placed.route.name == name), None)
        return found or root.model_copy(update={"send_resolved": True})
