"""Whether the transforms of a mapping fit the fields of its stream."""

import re
from collections.abc import Iterator, Mapping

from lozenge.contracts.money import MINOR_DIGITS
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.fields import ARRAY, DECIMAL, ENUM, MAP, RECORD, TEXT, TIME, Field
from lozenge_upstream.normalise import countries
from lozenge_upstream.normalise import declarations as d

IDENTITY, EVENT_TIME = "transaction_id", "event_time"
"""What a mapping makes besides the fields of the stream: the source's own id of an event, and when it happened."""
WORDS = (d.Lookup, d.First, d.CaseOf, d.Constant)
AMOUNTS = (d.Decimal, d.MinorUnits)
_AMOUNT_TYPE = {"precision": 18, "scale": 4}
_TRUTH = frozenset({"true", "false"})
_CODES: Mapping[str, tuple[type[d.Transform], frozenset[str]]] = {
    "country": (d.Country, frozenset(countries.ALPHA2)),
    "currency": (d.Currency, frozenset(MINOR_DIGITS)),
}
_TIMES = (d.TimestampIso, d.TimestampParts, d.TimestampText, d.TimestampEpoch, d.TimestampMMDDhhmmss)
_TEXTS = (d.Text, d.Join, d.Reference, d.Currency, d.Country, *WORDS)
_BY_KIND: Mapping[str, tuple[type[d.Transform], ...]] = {
    TEXT: _TEXTS,
    ENUM: WORDS,
    DECIMAL: (*AMOUNTS, d.Number),
    TIME: _TIMES,
    "boolean": (d.Boolean, d.First, d.CaseOf),
    RECORD: (d.RecordOf,),
    ARRAY: (d.ListOf,),
    MAP: (d.MapOf,),
    **dict.fromkeys(("int", "long", "float", "double"), (d.Number,)),
}


def currency_of(name: str, spec: d.Decimal | d.MinorUnits, stream: StreamDefinition) -> str | None:
    """The field with the currency of the amount `name`: the one it says, or that is named like it, or the only one.

    `settlement_currency` is named like `settlement_amount`, and `currency` like `amount`.
    """
    if spec.currency is not None:
        return spec.currency
    found = [field.name for field in stream.fields if field.hints.get("codes") == "currency"]
    alike = name.replace("amount", "currency")
    return alike if alike in found else found[0] if len(found) == 1 else None


def problems(fields: Mapping[str, d.Transform], stream: StreamDefinition) -> Iterator[str]:
    """Everything about the fields of a mapping that could not become an event of the stream."""
    own = {field.name: field for field in stream.fields}
    if EVENT_TIME not in fields:
        yield f"fields.{EVENT_TIME}: Field required"
    for name, spec in fields.items():
        allowed = _allowed(name, own.get(name), stream)
        if allowed is None:
            yield f"fields.{name}: there is no such field in the stream {stream.name}"
        elif not isinstance(spec, allowed):
            yield f"fields.{name}: {_name_of(type(spec))} does not make it; {_names(allowed) or 'no transform'} does"
        else:
            yield from (f"fields.{name}: {problem}" for problem in _value_problems(spec, own.get(name)))
            yield from (f"fields.{name}: {problem}" for problem in _amount_problems(name, fields, stream))
            yield from _inner_problems(spec, own.get(name), f"fields.{name}")
    for field in stream.fields:
        if not field.optional and field.name not in fields:
            made = "" if field.kind in _BY_KIND else f"; no transform makes a {field.kind}, so make it optional"
            yield f"fields.{field.name}: Field required{made}"
    for name, spec in fields.items():
        if name != IDENTITY and isinstance(spec, d.Join) and spec.separator == d.IDENTITY_SEPARATOR:
            yield f"fields.{name}: a joined text needs a separator that people can read, such as '-'"
    yield from _leaks(fields, stream)


def _inner_problems(spec: d.Transform, field: Field | None, place: str) -> Iterator[str]:
    """What does not fit within a record, a list or a map."""
    if field is None:
        return
    if isinstance(spec, d.Container):
        yield from _part_problems(spec.of, field.element, f"{place}.of")
    elif isinstance(spec, d.RecordOf):
        own = {each.name: each for each in field.fields}
        for name, each in spec.fields.items():
            if name in own:
                yield from _part_problems(each, own[name], f"{place}.fields.{name}")
            else:
                yield f"{place}.fields.{name}: there is no such field in the record {field.type['name']}"
        for name, inner in own.items():
            if not inner.optional and name not in spec.fields:
                yield f"{place}.fields.{name}: Field required"


def _part_problems(spec: d.Transform, field: Field, place: str) -> Iterator[str]:
    """The same as of a field of the event; but a part is no amount with a currency, and no token."""
    allowed = tuple(each for each in _by_type(field) if each not in AMOUNTS)
    if not isinstance(spec, allowed):
        yield f"{place}: {_name_of(type(spec))} does not make it; {_names(allowed) or 'no transform'} does"
        return
    yield from (f"{place}: {problem}" for problem in _value_problems(spec, field))
    if isinstance(spec, d.Join) and spec.separator == d.IDENTITY_SEPARATOR:
        yield f"{place}: a joined text needs a separator that people can read, such as '-'"
    yield from _inner_problems(spec, field, place)


def _allowed(name: str, field: Field | None, stream: StreamDefinition) -> tuple[type[d.Transform], ...] | None:
    if name == IDENTITY:
        return (d.Text, d.Join)
    if name == EVENT_TIME:
        return _TIMES
    if field is None:
        return None
    return (d.Token,) if name in stream.tokens else _by_type(field)


def _by_type(field: Field) -> tuple[type[d.Transform], ...]:
    if (codes := str(field.hints.get("codes"))) in _CODES:
        return (_CODES[codes][0], *WORDS)
    return WORDS if field.kind == TEXT and field.values is not None else _BY_KIND.get(field.kind, ())


def _value_problems(spec: d.Transform, field: Field | None) -> Iterator[str]:
    if field is None or not spec.words:
        return
    if isinstance(spec, d.First | d.CaseOf) and spec.optional and not field.optional:
        yield "it is optional here, and every event has the field"
    codes = _CODES.get(field.hints.get("codes", ""))
    values = codes[1] if codes is not None else _TRUTH if field.kind == "boolean" else field.values
    if values is not None and (wrong := sorted(spec.words - values)):
        yield f"{', '.join(wrong)} is none of its values"
    elif field.pattern is not None and (odd := sorted(w for w in spec.words if not re.fullmatch(field.pattern, w))):
        yield f"{', '.join(odd)} has not the form {field.pattern}"


def _amount_problems(name: str, fields: Mapping[str, d.Transform], stream: StreamDefinition) -> Iterator[str]:
    spec, field = fields[name], next((field for field in stream.fields if field.name == name), None)
    if not isinstance(spec, AMOUNTS) or field is None:
        return
    if {name: field.type.get(name, 0) for name in _AMOUNT_TYPE} != _AMOUNT_TYPE:
        yield "an amount is a decimal of precision 18 and scale 4; `number` makes any other"
    if (currency := currency_of(name, spec, stream)) is None or currency not in fields:
        yield 'an amount has a currency: name its field, currency = "..."; `number` makes a decimal without one'


def _leaks(fields: Mapping[str, d.Transform], stream: StreamDefinition) -> Iterator[str]:
    """Fields that would copy what a token hides."""
    tokens = [spec for name, spec in fields.items() if name in stream.tokens and isinstance(spec, d.Token)]
    hidden = {way for spec in tokens if spec.parts is None and not spec.copied for way in d.ways(spec)}
    for name, spec in fields.items():
        if name not in stream.tokens and (copied := sorted(map(d.spelled, hidden & {*d.ways(spec)}))):
            yield f"{name} would copy the card number {', '.join(copied)}; only a token may"


def _name_of(transform: type[d.Transform]) -> str:
    return str(transform.model_fields["transform"].annotation.__args__[0])  # type: ignore[union-attr]


def _names(transforms: tuple[type[d.Transform], ...]) -> str:
    return ", ".join(map(_name_of, transforms))
