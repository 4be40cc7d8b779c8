"""What another release would make of raw records, in figures and examples for a person. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from lozenge.contracts.display_text import shown
from lozenge_upstream.normalise.field_checks import EVENT_TIME
from lozenge_upstream.normalise.normaliser import SKIPPED
from lozenge_upstream.releases.compared_records import DEAD_LETTER, EVENT, SKIP, Difference, outcome


@dataclass
class ChangeSummary:
    """Of so many raw `records`: what differs.

    `events_differ` are events before and after that have other values, `fields` how often each field has. `outcomes`
    counts the others, as "event -> dead letter". `examples` has at most `most` of each kind.
    """

    most: int
    records: int = 0
    events_differ: int = 0
    fields: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    examples: list[dict[str, Any]] = field(default_factory=list)
    _kinds: Counter[str] = field(default_factory=Counter, init=False)

    def add(self, topic: str, names: Sequence[str], records: int, found: Iterable[Difference]) -> None:
        """Adds `records` of a topic, of which those `found` differ in values of `names`."""
        self.records += records
        for each in found:
            before, after = map(outcome, each.reasons)
            kind = f"{before} -> {after}"
            values = _values(names, each) if before == after == EVENT else {}
            if values:
                self.events_differ += 1
                self.fields.update(values.keys())
                kind = ", ".join(values)
            else:
                self.outcomes[kind] += 1
            self._kinds[kind] += 1
            if self._kinds[kind] <= self.most:
                place = {"topic": topic, "partition": each.partition, "offset": each.offset}
                shown = values or {"": (_words(each.reasons[0]), _words(each.reasons[1]))}
                self.examples += [
                    place | {"field": name, "current": old, "new": new} for name, (old, new) in shown.items()
                ]

    def more(self, what: str) -> int:
        """How many more records become that than before: a dead letter, skipped."""
        changed = {tuple(kind.split(" -> ")): count for kind, count in self.outcomes.items()}
        return sum(count * ((after == what) - (before == what)) for (before, after), count in changed.items())

    def as_json(self) -> Mapping[str, Any]:
        """The object that a tool prints."""
        return {
            "records": self.records,
            "events_differ": self.events_differ,
            "fields": dict(self.fields.most_common()),
            "outcomes": dict(self.outcomes.most_common()),
            "more_dead_letters": self.more(DEAD_LETTER),
            "more_skipped": self.more(SKIP),
            "examples": self.examples,
        }


def _values(names: Sequence[str], found: Difference) -> dict[str, tuple[str | None, str | None]]:
    before, after = found.values
    pairs = zip(names, before or (), after or (), strict=True)
    return {name: (_shown(name, old), _shown(name, new)) for name, old, new in pairs if old != new}


def _shown(name: str, value: str | None) -> str | None:
    if value is not None and name == EVENT_TIME:
        try:
            return datetime.fromtimestamp(int(value) / 1e6, UTC).isoformat()
        except (ValueError, OverflowError, OSError):
            return value
    return None if value is None else shown(value)


def _words(reason: str | None) -> str:
    """ "event", "dead letter: missing:amount", "skipped: wallet/probe"."""
    what = outcome(reason)
    return f"{what}: {(reason or '').removeprefix(SKIPPED)}" if what in (DEAD_LETTER, SKIP) else what
