"""Why an alert is muted: a silence matches it, or another alert inhibits it. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from lozenge_downstream.model import PublishedAlert
from lozenge_downstream.routing.config import InhibitRule
from lozenge_downstream.routing.matchers import Labels, all_match
from lozenge_downstream.store.silences import Silence

Inhibitors = Mapping[tuple[str, str, bool], str]
"""The active inhibitors by rule, by the values of its `equal`, and by whether they match both its sides."""


def rule_of(rule: InhibitRule) -> str:
    """The id of a rule: a digest of its text."""
    return _digest([[str(m) for m in rule.source_matchers], [str(m) for m in rule.target_matchers], rule.equal])


def equal_of(rule: InhibitRule, labels: Labels) -> str:
    """A digest of the values that an inhibitor and the alerts that it inhibits have in common."""
    return _digest([rule_of(rule), [labels.get(name, "") for name in rule.equal]])


def inhibits(rule: InhibitRule, labels: Labels) -> bool:
    """Whether an alert with these labels inhibits others."""
    return all_match(rule.source_matchers, labels)


def is_two_sided(rule: InhibitRule, labels: Labels) -> bool:
    """Whether an alert with these labels matches both sides of the rule."""
    return all_match(rule.source_matchers, labels) and all_match(rule.target_matchers, labels)


def equals_of(inhibit_rules: Iterable[InhibitRule], alerts: Iterable[PublishedAlert]) -> list[str]:
    """The keys by which to find the inhibitors of `alerts`."""
    rules = list(inhibit_rules)
    return sorted(
        {equal_of(rule, a.labels) for a in alerts for rule in rules if all_match(rule.target_matchers, a.labels)}
    )


class Mutes:
    """The silences and inhibitors at one moment."""

    def __init__(self, silences: Sequence[Silence], rules: Sequence[InhibitRule], inhibitors: Inhibitors) -> None:
        self._silences, self._rules, self._inhibitors = silences, rules, inhibitors

    def __call__(self, alert: PublishedAlert) -> str:
        """The reason; "" if it is not muted. Silences come first, because they name their author."""
        return self.silence(alert) or self.inhibit(alert)

    def silence(self, alert: PublishedAlert) -> str:
        """The silence that matches it, or ""."""
        return next((str(silence) for silence in self._silences if silence.mutes(alert.labels)), "")

    def inhibit(self, alert: PublishedAlert) -> str:
        """The alert that inhibits it, or "". As in Alertmanager, two alerts never inhibit each other."""
        for rule in self._rules:
            if not all_match(rule.target_matchers, alert.labels):
                continue
            sides = (False,) if inhibits(rule, alert.labels) else (False, True)
            for two_sided in sides:
                by = self._inhibitors.get((rule_of(rule), equal_of(rule, alert.labels), two_sided))
                if by is not None and by != alert.id:
                    return f"inhibited by alert {by}"
        return ""


def _digest(value: object) -> str:
    return sha256(json.dumps(value).encode()).hexdigest()[:32]
