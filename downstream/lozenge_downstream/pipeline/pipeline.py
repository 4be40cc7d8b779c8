"""The notifier's stages in their order, for one batch in one transaction of the store.

When records are received:  decode, deduplicate, enrich, rate-limit     (ingest.decode)
                            route, group                                (here, by routing.tree)
When a case is due:         eligible, muted, limited, rendered, recorded (stages)

A case whose route has no `group_wait` is due when it opens, so that both happen in one transaction.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from lozenge.contracts.schemas import Schema
from lozenge.contracts.topics import Topics
from lozenge_downstream.ingest.decode import AlertDecoder, Decoded
from lozenge_downstream.model import (
    ChannelTrouble,
    Classification,
    Evaluation,
    Outgoing,
    PublishedAlert,
    ReceivedAlert,
    ReceivedRecord,
    RoutingSource,
)
from lozenge_downstream.pipeline.channel_alarms import channel_alarms
from lozenge_downstream.pipeline.detector_alarms import rate_limit_alarms, silence_alarms
from lozenge_downstream.pipeline.mute import equal_of, inhibits, is_two_sided, rule_of
from lozenge_downstream.pipeline.notify_policy import (
    join,
    open_case,
    resolves_at,
)
from lozenge_downstream.pipeline.render import Renderer
from lozenge_downstream.pipeline.routing_alarm import routing_alarm
from lozenge_downstream.pipeline.stages import Group, eligible, limited, muted, recorded, rendered
from lozenge_downstream.routing.config import InhibitRule, Routing
from lozenge_downstream.store import Transaction
from lozenge_downstream.store.cases import key_of

BASELINE_DAYS = 14


class Pipeline:
    """All stages. `routing` may be replaced between two calls; `source` is where it is from."""

    def __init__(
        self,
        routing: Routing,
        topics: Topics,
        learn: Callable[[], Iterable[Schema]] = tuple,
        link: Callable[[str], str] | None = None,
    ) -> None:
        self.routing, self.topics = routing, topics
        self.source = RoutingSource()
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
        refused = Counter(r.alert.detector for r in received if r.alert and r.outcome is Classification.RATE_LIMITED)
        alarms = t.received_alerts.add_alarms(rate_limit_alarms(refused, t.now))
        self.process([*accepted, *alarms], t, dead_letters)
        return received

    def raise_silence_alarms(self, t: Transaction) -> None:
        """Raises an alarm for each silent detector. Call it when all alerts are read."""
        if self.routing.detector_alarms.silent:
            self.process(
                t.received_alerts.add_alarms(silence_alarms(t.received_alerts.baselines(BASELINE_DAYS), t.now)), t
            )

    def raise_routing_alarm(self, version: str, problem: str, t: Transaction) -> None:
        """Raises an alarm about an invalid `version` of the routing file."""
        raised = routing_alarm(self.source.file, version, problem, self.source.version, t.now)
        self.process(t.received_alerts.add_alarms([raised]), t)

    def raise_channel_alarms(self, troubles: Sequence[ChannelTrouble], t: Transaction) -> None:
        """Raises an alarm for each channel of the routing file that is in trouble."""
        self.process(t.received_alerts.add_alarms(channel_alarms(troubles, self.routing.channels, t.now)), t)

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
        groups = [Group(case, self.routing.route.named(case.route), is_new=False) for case in t.cases.due(limit)]
        if groups:
            self._notify(groups, t)
        return len(groups)

    def _group(self, alerts: Sequence[PublishedAlert], t: Transaction) -> list[Group]:
        routed = [(alert, self.routing.route.taking(alert.labels)) for alert in alerts]
        self._record_inhibitors(alerts, self.routing.inhibit_rules, t)
        keyed = [
            (key_of(route.name, route.group_of(alert.id, alert.labels)), route, alert)
            for alert, routes in routed
            for route in routes
        ]
        open_ = t.cases.open(sorted({key for key, route, _ in keyed if not route.alone}))
        groups: dict[str, Group] = {}
        for key, route, alert in keyed:
            if (group := groups.get(key)) is None:
                known = open_.get(key)
                group = groups[key] = Group(known or open_case(route, alert), route, is_new=known is None)
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

    def _notify(self, groups: Sequence[Group], t: Transaction, dead_letters: Sequence[Outgoing] = ()) -> None:
        due = eligible(groups, t)
        mute_of = muted(due, self.routing, t)
        evaluations: dict[str, Evaluation] = {}
        for group in due:
            found = limited(group, mute_of(group), t.now)
            render = partial(self._render, source=self.source)
            evaluations[group.case.id] = rendered(group, found, render, self.routing, t)
        recorded(groups, evaluations, dead_letters, t)
