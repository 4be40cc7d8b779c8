r"""Matchers of the labels of an alert, as in Alertmanager; and `>=` and `<=` for severities.

    detector = "large_amount"      entity_type != user      owner =~ "team-(a|b)"      severity >= high

A label that an alert does not have is "". Regular expressions are RE2's, as in Alertmanager, and match the whole
value; their time is linear in its length, so no expression can hang the notifier. Between quotation marks, `\"` is a
quotation mark and `\\` one backslash; any other backslash is itself.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

import re2
from pydantic import BeforeValidator, PlainSerializer

from lozenge_downstream.model import SEVERITIES, rank

Labels = Mapping[str, str]

SEVERITY = "severity"
_ALWAYS = frozenset({("=~", ".*"), ("=~", "(.*)"), ("=~", "(?s).*")})
"""Operators with values for which a matcher holds for every alert."""
_FORM = re.compile(
    r"""\s*(?P<label>[A-Za-z_][\w.:/-]*)\s*(?P<operator>=~|!~|!=|>=|<=|=)\s*(?P<value>"(?:[^"\\]|\\.)*"|[^\s"]+)\s*""",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Matcher:
    """One matcher; `parse` reads what `str` writes."""

    label: str
    operator: str
    value: str

    def __call__(self, labels: Labels) -> bool:
        """Whether it holds for an alert with these labels."""
        given = labels.get(self.label, "")
        match self.operator:
            case "=":
                return given == self.value
            case "!=":
                return given != self.value
            case "=~":
                return _expression(self.value).fullmatch(given) is not None
            case "!~":
                return _expression(self.value).fullmatch(given) is None
            case ">=":
                return rank(given) >= rank(self.value)
            case _:
                return rank(given) <= rank(self.value)

    @property
    def is_open(self) -> bool:
        """Whether it holds for alerts without the label; of severities, which all alerts have, whether for each."""
        if self.operator in (">=", "<="):
            return all(self({SEVERITY: severity}) for severity in SEVERITIES)
        return self({}) and (self.label != SEVERITY or all(self({SEVERITY: severity}) for severity in SEVERITIES))

    def is_implied_by(self, others: Collection["Matcher"]) -> bool:
        """Whether it surely holds for each alert that all of `others` match; False also if that is not known."""
        if self in others or (self.operator, self.value) in _ALWAYS or (self.label == SEVERITY and self.is_open):
            return True
        mine = [other for other in others if other.label == self.label]
        if self.label == SEVERITY and mine:
            return all(self({SEVERITY: s}) for s in SEVERITIES if all_match(mine, {SEVERITY: s}))
        return any(other.operator == "=" and self({self.label: other.value}) for other in mine)

    def __str__(self) -> str:
        value = self.value.replace("\\", "\\\\").replace('"', '\\"')
        return f'{self.label} {self.operator} "{value}"'


def parse(text: object) -> Matcher:
    """The matcher of a text; raises ValueError with the problem."""
    if isinstance(text, Matcher):
        return text
    found = _FORM.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"{text!r} is no matcher such as 'detector = \"large_amount\"' or 'severity >= high'")
    value = found["value"]
    if value.startswith('"'):
        value = re.sub(r'\\(["\\])', r"\1", value[1:-1])
    matcher = Matcher(found["label"], found["operator"], value)
    if matcher.operator in ("=~", "!~"):
        try:
            _expression(matcher.value)
        except re2.error as error:
            raise ValueError(f"{text!r}: {error.args[0].decode()}") from None
    elif matcher.operator in (">=", "<=") and matcher.label != SEVERITY:
        raise ValueError(f"{text!r}: {matcher.operator} compares severities only")
    if matcher.label == SEVERITY and matcher.operator in ("=", "!=", ">=", "<=") and matcher.value not in SEVERITIES:
        raise ValueError(f"{text!r}: {matcher.value!r} is none of {', '.join(SEVERITIES)}")
    return matcher


def are_contradictory(matchers: Collection[Matcher]) -> bool:
    """Whether no alert matches all of them, as far as single labels show: two values of one, or no severity."""
    exact = ({m.label: m.value} for m in matchers if m.operator == "=")
    severities = [m for m in matchers if m.label == SEVERITY]
    return not any(all_match(severities, {SEVERITY: s}) for s in SEVERITIES) or any(
        not all_match((m for m in matchers if m.label in labels), labels) for labels in exact
    )


@lru_cache(maxsize=1024)
def _expression(text: str) -> Any:
    options = re2.Options()
    options.log_errors = False  # they are raised
    return re2.compile(text, options)


MatcherField = Annotated[Matcher, BeforeValidator(parse), PlainSerializer(str)]
"""A pydantic field type that takes a matcher as text."""


def all_match(matchers: Iterable[Matcher], labels: Labels) -> bool:
    """Whether all of them hold; without matchers, every alert matches."""
    return all(matcher(labels) for matcher in matchers)
