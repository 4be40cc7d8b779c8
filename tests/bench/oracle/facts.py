"""What the script says about an alert at a moment: whether it lasts, and what mutes it.

Asks neither system: by these facts differences are explained, and the messages of both are held against them.
"""

from collections import defaultdict
from collections.abc import Iterable

from lozenge_downstream.routing.config import InhibitRule
from lozenge_downstream.routing.matchers import all_match, parse
from tests.bench.oracle.notifications import AlertGroup
from tests.bench.oracle.script import GROUP_WAIT, INTERVAL, OPENS, SHUTS, SILENCES, Given, alerts


class Facts:
    """Times are seconds after the start."""

    def __init__(self, groups: dict[str, set[AlertGroup]], inhibit: Iterable[InhibitRule]) -> None:
        self._silences = [(s, [parse(m) for m in s.matchers]) for s in SILENCES]
        self._rules = tuple(inhibit)
        self.alerts = {alert.id: alert for alert in alerts()}
        self.members: dict[AlertGroup, list[Given]] = defaultdict(list)
        self._sources: dict[tuple[str, ...], list[Given]] = defaultdict(list)
        for alert in alerts():
            for group in groups[alert.id]:
                self.members[group].append(alert)
            for number, rule in enumerate(self._rules):
                if all_match(rule.source_matchers, alert.labels):
                    self._sources[_pair(number, rule, alert)].append(alert)

    def lasting(self, group: AlertGroup, at: float) -> list[Given]:
        """The alerts of a group that have come and are not over."""
        return [alert for alert in self.members[group] if alert.at <= at < alert.resolves_at]

    def notified(self, group: AlertGroup, at: float) -> frozenset[str]:
        """The alerts of a group that last and are not muted."""
        return frozenset(alert.id for alert in self.lasting(group, at) if not self.muted(group, alert, at))

    def muted(self, group: AlertGroup, alert: Given, at: float) -> bool:
        """Whether a window, a silence or another alert mutes one."""
        return self._quiet(group, at) or self._silenced(alert, at) or self._inhibited(alert, at)

    def _quiet(self, group: AlertGroup, at: float) -> bool:
        return group.receiver == "night" or (group.receiver == "brief" and not OPENS <= at < SHUTS)

    def _silenced(self, alert: Given, at: float) -> bool:
        return any(s.starts <= at < s.ends and all_match(matchers, alert.labels) for s, matchers in self._silences)

    def _inhibited(self, alert: Given, at: float) -> bool:
        for number, rule in enumerate(self._rules):
            if all_match(rule.target_matchers, alert.labels):
                both = all_match(rule.source_matchers, alert.labels)
                for source in self._sources[_pair(number, rule, alert)]:
                    two_sided = both and all_match(rule.target_matchers, source.labels)
                    if source.at <= at < source.resolves_at and not two_sided:
                        return True
        return False


def tick(at: float) -> int:
    """The moment at which Alertmanager decided what it sent at `at`."""
    return int((at - GROUP_WAIT) // INTERVAL) * INTERVAL + GROUP_WAIT


def next_tick(at: float) -> int:
    """The moment at which Alertmanager decides next, from `at` on."""
    return tick(at + INTERVAL - 0.001)


def _pair(number: int, rule: InhibitRule, alert: Given) -> tuple[str, ...]:
    return (str(number), *(alert.labels.get(name, "") for name in rule.equal))
