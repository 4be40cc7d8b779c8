"""Which field has the currency of each amount: one of the same record, or of a record around it."""

from collections.abc import Iterator

from lozenge.streams.fields import Field
from lozenge_upstream.normalise.declarations.amounts import Decimal, MinorUnits
from lozenge_upstream.normalise.declarations.nested import Container, RecordOf
from lozenge_upstream.normalise.declarations.transform import Transform

Scopes = tuple[tuple[Field, ...], ...]
"""The fields of the records around a value, from the event inwards."""
Place = tuple[int, str]
"""A field of one of these records, by the number of that record."""


def currency_of(name: str, spec: Decimal | MinorUnits, scopes: Scopes) -> Place | None:
    """The field with the currency of the amount `name`; None where none, or no single one, can be it.

    It is the one that the amount names, of the innermost record that has it. Where it names none, the innermost record
    with currencies decides: the one named like the amount, as `settlement_currency` is like `settlement_amount`, or
    else the only one.
    """
    for depth in reversed(range(len(scopes))):
        if spec.currency is not None:
            if any(field.name == spec.currency for field in scopes[depth]):
                return depth, spec.currency
            continue
        found = [field.name for field in scopes[depth] if field.hints.get("codes") == "currency"]
        alike = name.replace("amount", "currency")
        if found:
            only = found[0] if len(found) == 1 else None
            chosen = alike if alike in found else only
            return (depth, chosen) if chosen is not None else None
    return None


def currencies(spec: Transform, field: Field, scopes: Scopes) -> Iterator[Place]:
    """The field with the currency of each amount that a transform makes of `field`, or within it."""
    if isinstance(spec, Decimal | MinorUnits):
        if (place := currency_of(field.name, spec, scopes)) is not None:
            yield place
    elif isinstance(spec, RecordOf):
        for each in field.fields:
            if each.name in spec.fields:
                yield from currencies(spec.fields[each.name], each, (*scopes, tuple(field.fields)))
    elif isinstance(spec, Container):
        yield from currencies(spec.of, field.element, scopes)
