"""Why an alert is not told now: somebody silenced it, another alert inhibits it, or its route keeps quiet. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from lozenge_downstream.model import Alert
from lozenge_downstream.routing.config import Inhibition
from lozenge_downstream.routing.matchers import Labels, all_match
from lozenge_downstream.store.silences import Silence

Inhibitors = Mapping[tuple[str, str, bool], str]
"""Alerts that inhibit now, by rule, by the values of its `equal`, and by whether they match both its sides."""


def rule_of(inhibition: Inhibition) -> str:
    """What an inhibition is known by: another text is another rule."""
    return _digest([[str(m) for m in inhibition.source], [str(m) for m in inhibition.target], inhibition.equal])


def equal_of(inhibition: Inhibition, labels: Labels) -> str:
    """The values that an alert and what it inhibits have in common."""
    return _digest([rule_of(inhibition), [labels.get(name, "") for name in inhibition.equal]])


def inhibits(inhibition: Inhibition, labels: Labels) -> bool:
    """Whether such an alert inhibits others."""
    return all_match(inhibition.source, labels)


def is_two_sided(inhibition: Inhibition, labels: Labels) -> bool:
    """Whether such an alert could be inhibited by the rule by which it inhibits."""
    return all_match(inhibition.source, labels) and all_match(inhibition.target, labels)


def equals_of(inhibitions: Iterable[Inhibition], alerts: Iterable[Alert]) -> list[str]:
    """By what to look for alerts that inhibit any of `alerts`."""
    rules = list(inhibitions)
    return sorted({equal_of(rule, a.labels) for a in alerts for rule in rules if all_match(rule.target, a.labels)})


class Mutes:
    """What holds at one moment."""

    def __init__(self, silences: Sequence[Silence], inhibitions: Sequence[Inhibition], inhibitors: Inhibitors) -> None:
        self._silences, self._inhibitions, self._inhibitors = silences, inhibitions, inhibitors

    def __call__(self, alert: Alert) -> str:
        """The reason; "" if it may be told. Silences come first: they say who wanted it."""
        return self.silence(alert) or self.inhibit(alert)

    def silence(self, alert: Alert) -> str:
        """The silence that holds for it."""
        return next((str(silence) for silence in self._silences if silence.mutes(alert.labels)), "")

    def inhibit(self, alert: Alert) -> str:
        """The alert that inhibits it; as in Alertmanager, none that could be inhibited by it in turn."""
        for rule in self._inhibitions:
            if not all_match(rule.target, alert.labels):
                continue
            sides = (False,) if inhibits(rule, alert.labels) else (False, True)
            for two_sided in sides:
                by = self._inhibitors.get((rule_of(rule), equal_of(rule, alert.labels), two_sided))
                if by is not None and by != alert.id:
                    return f"inhibited by alert {by}"
        return ""


def _digest(value: object) -> str:
    return sha256(json.dumps(value).encode()).hexdigest()[:32]
