"""Which template a new detector begins with, and what it says of the stream: any stream has one for each kind.

Fields are chosen by their type, never by their name. A rule looks at the first number, else at a text, else at the
time. A fold looks at a text that changes, else at how soon the next event comes; of several streams at which event
follows which, and of alerts at how many there are. An aggregate counts events. The values in code and tests are made of
the examples that the stream declares.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from lozenge.contracts.detector_kind import DetectorKind
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.fields import DECIMAL, ENUM, TEXT, Field

_WHOLE = {"int": 2**31 - 1, "long": 2**63 - 1}
_FRACTIONS = ("double", "float")
_TIMES_USUAL = 50
"""How many times the example a rule's first limit is: far from what is usual."""
_CODES = {"country": ("DE", "FR"), "currency": ("EUR", "USD")}
_MONEY_DECIMALS = 2

Words = Mapping[str, str]


@dataclass(frozen=True)
class ChosenTemplate:
    """A folder of `templates/`, the words in its files, and what its README says, in which the words stand too."""

    folder: str
    words: Words
    description: str
    fires: str
    misses: str
    settings: str


def choose_template(kind: str, stream: StreamDefinition, key: str) -> ChosenTemplate:
    """The template for a detector of `kind` whose entity is the `key` of the stream."""
    given = _given(stream, key)
    if stream.members:
        return _merged(stream, given)
    of = DetectorKind(kind)
    if of.state_in_checkpoint:
        return ChosenTemplate(
            kind,
            given,
            "Flags $a_key with several events within minutes.",
            "`limit` events of one $key within one `window`. One alert per $key and window.",
            "A burst that the edge of a window divides, and events more than 10 minutes late.",
            "| `window` | 10m | length of the window |\n| `limit` | 3 | events that raise an alert |",
        )
    if stream.alerts_of and not of.stateless:
        return _alerts(stream, given)
    text = next(iter(sorted(_texts(stream, key), key=_rank)), None)
    return (_rule if of.stateless else _fold)(stream, text, given)


def _merged(stream: StreamDefinition, given: Words) -> ChosenTemplate:
    first, second = (each.name for each in stream.members[:2])
    return ChosenTemplate(
        "merged",
        {**given, "first": first, "second": second},
        "Flags $a_key with $second within minutes after $first.",
        "An event of $second at most `within` after one of $first, of one $key.",
        "Pairs that are further apart, or come the other way round.",
        "| `within` | 5m | the longest time between the two |",
    )


def _alerts(stream: StreamDefinition, given: Words) -> ChosenTemplate:
    return ChosenTemplate(
        "alerts",
        {**given, "detector": stream.alerts_of},
        "Flags $a_key with several alerts of $detector within an hour.",
        "`limit` alerts of $detector about one $key, each at most `within` before the last one.",
        "Alerts that are further apart.",
        "| `within` | 1h | the longest time from the first to the last |\n| `limit` | 3 | alerts that raise an alert |",
    )


def _rule(stream: StreamDefinition, text: Field | None, given: Words) -> ChosenTemplate:
    number = next(iter(sorted(_numbers(stream), key=lambda field: (field.kind != DECIMAL, field.optional))), None)
    if number is not None and not stream.alerts_of:  # a score says less than a severity
        words = _number_words(number)
        currency = next((field.name for field in stream.fields if field.hints.get("codes") == "currency"), "")
        return ChosenTemplate(
            "rule_money" if currency and number.kind == DECIMAL else "rule_number",
            {**given, **words, "currency": currency},
            "Flags an event whose $field is above a limit.",
            "`$field` above `limit`. One alert per event.",
            "A large value that is divided among several events.",
            f"| `limit` | {words['default']} | the largest `$field` that raises no alert |",
        )
    if text is not None:
        return ChosenTemplate(
            "rule_text",
            {**given, **_text_words(text)},
            "Flags an event with a certain $field.",
            "`$field` equal to `watched`. One alert per event.",
            "The same under another spelling.",
            f"| `watched` | {_usual(text)} | the `$field` that raises an alert |",
        )
    return ChosenTemplate(
        "rule_time",
        given,
        "Flags an event at night.",
        "Any event before the hour `until`, in UTC. One alert per event.",
        "What happens at night elsewhere: the hours are those of UTC.",
        "| `until` | 5 | the hour before which an event raises an alert |",
    )


def _fold(stream: StreamDefinition, text: Field | None, given: Words) -> ChosenTemplate:
    if text is not None:
        return ChosenTemplate(
            "stateful_change",
            {**given, **_text_words(text)},
            "Flags $a_key whose $field changes within minutes.",
            "Two events of one $key with another `$field` each, at most `within` apart.",
            "Changes that are further apart.",
            "| `within` | 5m | the longest time between the two events |",
        )
    return ChosenTemplate(
        "stateful_repeat",
        given,
        "Flags $a_key that comes twice within seconds.",
        "Two events of one $key, at most `within` apart.",
        "Events that are further apart.",
        "| `within` | 10s | the longest time between the two events |",
    )


def _given(stream: StreamDefinition, key: str) -> dict[str, str]:
    """The key's words. Tests name the entity themselves where an event would have none."""
    name, column = stream.key(key), stream.column(key)
    field = next(field for field in stream.fields if field.name == column)
    entity = str(field.example if field.example is not None else f"{name}-1")
    given = "" if field.example is not None else f'"{column}": {_literal(entity)}, '
    article = "an" if name[0] in "aeio" else "a"  # a user, a unit
    words = {"key": name, "a_key": f"{article} {name}", "key_column": column}
    return {**words, "entity": _literal(entity)[1:-1], "given": given}


def _numbers(stream: StreamDefinition) -> Iterator[Field]:
    yield from (field for field in stream.fields if field.kind in (DECIMAL, *_WHOLE, *_FRACTIONS))


def _texts(stream: StreamDefinition, key: str) -> Iterator[Field]:
    """Texts that say something about an entity: those that name one come last, and never the key itself."""
    texts = [field for field in stream.fields if field.kind in (TEXT, ENUM) and field.name != stream.column(key)]
    names = {*stream.keys.values(), *stream.tokens}
    for field in sorted(texts, key=lambda field: field.name in names):
        if field.values is None or len(field.values) > 1:
            yield field


def _rank(field: Field) -> int:
    """Codes and words from a list change less often than other texts, and a pattern leaves no other value to guess."""
    if field.hints.get("codes"):
        return 0
    return 1 if field.values is not None else 2 + (field.pattern is not None)


def _text_words(field: Field) -> dict[str, str]:
    return {"field": field.name, "usual": _literal(_usual(field)), "another": _literal(_another(field))}


def _usual(field: Field) -> str:
    if field.example is not None:
        return str(field.example)
    codes: tuple[str, ...] = _CODES.get(field.hints.get("codes", ""), (f"{field.name}-1",))
    return min(field.values) if field.values else codes[0]


def _another(field: Field) -> str:
    usual = _usual(field)
    if field.values is not None:
        return min(field.values - {usual})
    codes: tuple[str, ...] = _CODES.get(field.hints.get("codes", ""), (f"another {field.name}",))
    return next(each for each in (*codes, f"not {usual}") if each != usual)


def _number_words(field: Field) -> dict[str, str]:
    """The largest value without an alert, and one above it, which the type of the field has."""
    usual = Decimal(str(field.example if field.example is not None else 1))
    step, most = _step_and_most(field, usual)
    *good, last = usual * _TIMES_USUAL, usual, usual - step
    limit = next((each for each in good if 0 < each <= most - step), last)
    above = limit + step
    words = {"field": field.name, "number_import": "", "above_in_euros": f"{above:.{_MONEY_DECIMALS}f}"}
    if field.kind == DECIMAL:
        whole = limit == limit.to_integral_value()
        default = str(int(limit)) if whole else f"{limit.normalize():f}"
        text = default if whole else f'"{default}"'
        decimals = min(_MONEY_DECIMALS, field.type.get("scale", 0))
        words |= {"number_type": "Decimal", "number_import": "\nfrom decimal import Decimal\n"}
        words |= {
            "limit": f"Decimal({text})",
            "at_limit": f'"{limit:.{decimals}f}"',
            "above": f'"{above:.{decimals}f}"',
        }
        return words | {"default": default}
    kind = float if field.kind in _FRACTIONS else int
    below = min(usual, limit)  # a float has no value that is equal to every limit
    found: dict[str, Any] = {"limit": kind(limit), "at_limit": kind(below), "above": kind(above)}
    return words | {"number_type": kind.__name__, "default": repr(kind(limit))} | {n: repr(v) for n, v in found.items()}


def _step_and_most(field: Field, usual: Decimal) -> tuple[Decimal, Decimal]:
    """A difference that a test shows, and the largest value that the field holds."""
    if field.kind == DECIMAL:
        scale = field.type.get("scale", 0)
        step = Decimal(1).scaleb(-min(scale, _MONEY_DECIMALS))
        return step, Decimal(10) ** (field.type["precision"] - scale) - step
    if field.kind in _WHOLE:
        return Decimal(1), Decimal(_WHOLE[field.kind])
    return max(Decimal(1), abs(usual)), Decimal("1e38")


def _literal(text: str) -> str:
    """A string of Python, which takes those of JSON."""
    return json.dumps(text, ensure_ascii=False)
