"""Whether the transforms of a mapping fit the fields of its stream."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from lozenge.contracts.money import MINOR_DIGITS
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.fields import ARRAY, DECIMAL, ENUM, MAP, RECORD, TEXT, TIME, Field
from lozenge.toml_places import Place, Problem
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
_ENVELOPE: Mapping[str, tuple[type[d.Transform], ...]] = {IDENTITY: (d.Text, d.Join), EVENT_TIME: _TIMES}
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


@dataclass(frozen=True)
class _Place:
    """Where a field is: in the file, by the names that lead to it in the event, and in which records.

    `mapped` are the fields of these records that have a transform. `unreadable` are places of the file whose
    transform has another problem already.
    """

    stream: StreamDefinition
    unreadable: Collection[Place]
    file: Place = ("fields",)
    name: str = ""
    scopes: d.Scopes = ()
    mapped: tuple[Collection[str], ...] = ()

    def field(self, name: str) -> "_Place":
        """A field of the record that is here."""
        return replace(self, file=(*self.file, name), name=f"{self.name}.{name}" if self.name else name)

    def record(self, fields: Iterable[Field], specs: Collection[str]) -> "_Place":
        """The record that is here, with these fields, of which `specs` are mapped."""
        return replace(self, scopes=(*self.scopes, tuple(fields)), mapped=(*self.mapped, specs))

    def declared(self, specs: Iterable[str]) -> set[str]:
        """The fields of the record here that the file has a transform for, whether it can be read or not."""
        return {*specs, *(str(place[-1]) for place in self.unreadable if place[:-1] == self.file)}


def problems(
    fields: Mapping[str, d.Transform], stream: StreamDefinition, unreadable: Collection[Place] = ()
) -> Iterator[Problem]:
    """Everything about the fields of a mapping that could not become an event of the stream.

    Of what is `unreadable`, places in the file, nothing is said.
    """
    root = _Place(stream, unreadable)
    if EVENT_TIME not in root.declared(fields):
        yield Problem((*root.file, EVENT_TIME), _lacking(_TIMES))
    for name, allowed in _ENVELOPE.items():
        if name in fields and not isinstance(fields[name], allowed):
            yield Problem((*root.file, name), _unfit(fields[name], allowed))
    own = {name: spec for name, spec in fields.items() if name not in _ENVELOPE}
    yield from _record_problems(own, stream.fields, f"stream {stream.name}", root)
    yield from _leaks(fields)


def _record_problems(
    specs: Mapping[str, d.Transform], fields: Collection[Field], what: str, at: _Place
) -> Iterator[Problem]:
    """What does not fit in a record, of which the event is the outermost."""
    declared = at.declared(specs)
    own, within = {field.name: field for field in fields}, at.record(fields, declared)
    for name, spec in specs.items():
        if name in own:
            yield from _field_problems(spec, own[name], within.field(name))
        else:
            yield Problem((*at.file, name), f"there is no such field in the {what}; it has {', '.join(own)}")
    for field in fields:
        if not field.optional and field.name not in declared:
            inner = within.field(field.name)
            yield Problem(inner.file, _lacking(_allowed(field, inner), field.kind))


def _field_problems(spec: d.Transform, field: Field, at: _Place) -> Iterator[Problem]:
    """What does not fit in a field, or in an element of a list or a map, and within it."""
    if not isinstance(spec, allowed := _allowed(field, at)):
        yield Problem(at.file, _unfit(spec, allowed))
        return
    for problem in (*_value_problems(spec, field), *_amount_problems(spec, field, at)):
        yield Problem(at.file, problem)
    if isinstance(spec, d.RecordOf):
        inner = replace(at, file=(*at.file, "fields"))
        yield from _record_problems(spec.fields, field.fields, f"record {field.type['name']}", inner)
    elif isinstance(spec, d.Container):
        yield from _field_problems(spec.of, field.element, replace(at, file=(*at.file, "of")))


def _allowed(field: Field, at: _Place) -> tuple[type[d.Transform], ...]:
    is_token = at.name in at.stream.tokens and field.kind not in (RECORD, ARRAY, MAP)
    return (d.Token,) if is_token else _by_type(field)


def _by_type(field: Field) -> tuple[type[d.Transform], ...]:
    if (codes := str(field.hints.get("codes"))) in _CODES:
        return (_CODES[codes][0], *WORDS)
    return WORDS if field.kind == TEXT and field.values is not None else _BY_KIND.get(field.kind, ())


def _value_problems(spec: d.Transform, field: Field) -> Iterator[str]:
    if isinstance(spec, d.Join) and spec.separator == d.IDENTITY_SEPARATOR:
        yield "a joined text needs a separator that people can read, such as '-'"
    if not field.optional and _may_be_absent(spec):
        yield "it is optional here, and every event has the field"
    if not spec.words:
        return
    codes = _CODES.get(field.hints.get("codes", ""))
    values = codes[1] if codes is not None else _TRUTH if field.kind == "boolean" else field.values
    if values is not None and (wrong := sorted(spec.words - values)):
        yield f"{', '.join(wrong)} is none of its values"
    elif field.pattern is not None:
        form = re.compile(field.pattern, re.ASCII)
        if odd := sorted(word for word in spec.words if not form.fullmatch(word)):
            yield f"{', '.join(odd)} has not the form {field.pattern}"


def _may_be_absent(spec: d.Transform) -> bool:
    """Whether the transform says of some records that they have no such value, and that this is right."""
    if isinstance(spec, d.Reference):
        return all(each.when for each in spec.of)
    return isinstance(spec, d.First | d.CaseOf) and spec.optional


def _amount_problems(spec: d.Transform, field: Field, at: _Place) -> Iterator[str]:
    if not isinstance(spec, AMOUNTS):
        return
    if {name: field.type.get(name, 0) for name in _AMOUNT_TYPE} != _AMOUNT_TYPE:
        yield "an amount is a decimal of precision 18 and scale 4; `number` makes any other"
    place = d.currency_of(field.name, spec, at.scopes)
    if place is None or place[1] not in at.mapped[place[0]]:
        yield 'an amount has a currency: name its field, currency = "..."; `number` makes a decimal without one'


def _leaks(fields: Mapping[str, d.Transform]) -> Iterator[Problem]:
    """Fields, and parts of them, that would copy what a token hides."""
    found = [(field, leaf) for field, spec in fields.items() for leaf in d.leaves(field, spec)]
    hidden = {way for _, leaf in found if _hides(leaf.spec) for way in leaf.ways}
    for field, leaf in found:
        if not isinstance(leaf.spec, d.Token) and (copied := sorted(map(d.spelled, hidden & {*leaf.ways}))):
            yield Problem(
                ("fields", field), f"{leaf.name} would copy the card number {', '.join(copied)}; only a token may"
            )


def _hides(spec: d.Transform) -> bool:
    return isinstance(spec, d.Token) and spec.parts is None and not spec.copied


def _lacking(allowed: tuple[type[d.Transform], ...], kind: str = "") -> str:
    """What is said of a field that has no transform and needs one."""
    if not allowed:
        return f"it is missing, and no transform makes a {kind}, so make it optional"
    return f"it is missing: declare how it is made, by {_names(allowed)}"


def _unfit(spec: d.Transform, allowed: tuple[type[d.Transform], ...]) -> str:
    return f"{_name_of(type(spec))} does not make it; {_names(allowed) or 'no transform'} does"


def _name_of(transform: type[d.Transform]) -> str:
    return str(transform.model_fields["transform"].annotation.__args__[0])  # type: ignore[union-attr]


def _names(transforms: tuple[type[d.Transform], ...]) -> str:
    return ", ".join(map(_name_of, transforms))
