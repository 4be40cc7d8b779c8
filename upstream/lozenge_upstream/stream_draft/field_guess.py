"""The field of an event that the values of a raw field suggest: name, type, transform, and what was guessed."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from keyword import iskeyword
from typing import Any

from lozenge.contracts.card_numbers import has_card_number
from lozenge.errors import UsageError
from lozenge.streams.fields import ENVELOPE, RECORD
from lozenge_upstream.stream_draft.raw_records import ObservedField
from lozenge_upstream.stream_draft.time_forms import is_time_name, time_form

KINDS = ("string", "long", "double", "decimal", "boolean", "timestamp", "enum")
"""What a person may say that a field is."""
_ELEMENTS = ("string", "long", "double", "decimal", "boolean")
_DATE = re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{4}\b|\d{4}[./]\d{1,2}[./]\d{1,2}\b", re.ASCII)
_TIME = {"type": "long", "logicalType": "timestamp-micros"}
_LONG = 2**63
_MOST_SYMBOLS = 100
_DECIMAL = r"[+-]?[0-9]+\.[0-9]+"
_NUMBER = r"[+-]?[0-9]+(\.[0-9]+)?"
TOKEN_WORD = "card"
"""What tokens of card numbers begin with."""


@dataclass(frozen=True)
class FieldGuess:
    """A field of the draft. `transform` is None where it is not mapped; `notes` say what was guessed, for people.

    `parts` are the fields of a record, or what each element of an array or a map is. `label` is the raw field for
    people, `items[].price`, where its path begins at an element. `values` are those of the raw field, if it has plain
    ones.
    """

    name: str
    path: str
    kind: str
    type: Any
    transform: dict[str, Any] | None
    optional: bool
    notes: tuple[str, ...] = ()
    parts: tuple["FieldGuess", ...] = ()
    label: str = ""
    values: Sequence[Any] = field(default=(), compare=False, repr=False)

    @property
    def raw(self) -> str:
        """The raw field for people."""
        return self.label or self.path or '""'

    @property
    def avro(self) -> dict[str, Any]:
        """Its declaration in the schema."""
        optional = {"type": ["null", self.type], "default": None} if self.optional else {"type": self.type}
        guessed = f" Guessed: {'; '.join(self.notes)}." if self.notes else ""
        return {"name": self.name, **optional, "doc": f"Raw field {self.raw}.{guessed}"}

    @property
    def all_notes(self) -> tuple[str, ...]:
        """Its notes and those of its parts."""
        return (*self.notes, *(note for part in self.parts for note in part.all_notes))

    def leaves(self, above: str = "") -> Iterator[tuple[str, "FieldGuess"]]:
        """What is in the event and has no parts, by the names that lead there."""
        name = f"{above}.{self.name}" if above else self.name
        if self.kind == RECORD:
            for part in self.parts:
                yield from part.leaves(name)
        elif self.parts:
            yield from replace(self.parts[0], name=self.name).leaves(above)
        elif self.transform is not None:
            yield name, self

    def not_mapped(self, why: str) -> "FieldGuess":
        """The same without a field in the event."""
        return replace(self, transform=None, notes=(f"{self.raw} is not mapped: {why}",))


def field_name(steps: Sequence[str]) -> str:
    """The name that an event has for a raw field: its names in lower case, joined by underscores."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", "_".join(steps))
    name = re.sub(r"\W+|_{2,}", "_", words, flags=re.ASCII).strip("_").lower() or "field"
    name = name if name[0].isalpha() else f"field_{name}"
    return f"{name}_" if iskeyword(name) else (f"source_{name}" if name in ENVELOPE else name)


def guess(
    path: str, of: ObservedField, optional: bool, *, kind: str = "", zone: str = "", label: str = ""
) -> FieldGuess:
    """The field for the raw field at `path`, of the `kind` that is given, or of the one that its values suggest.

    `zone` is that of times without an offset. Raises UsageError where the values are none of `kind`.
    """
    name, text = field_name(of.steps), {"transform": "text", "path": path}
    found = FieldGuess(name, path, "string", "string", text, optional, label=label, values=of.values)
    if not of.values:
        return found.not_mapped("it has a value in no record")
    made = _made(found, of.values, kind or _kind(name, of.values, zone), zone)
    if made is None:
        raise UsageError(
            f"drafting a stream: {found.raw} is no {kind}: it has {_shown(of.values)}",
            hint="omit --type, or name another",
        )
    return made


def guess_element(name: str, values: Sequence[Any], label: str, *, kind: str = "") -> FieldGuess:
    """What each of the plain values of lists or of a map is, which `name` has; no token and no time is guessed."""
    one = FieldGuess(name, ".", "string", "string", None, False, label=label, values=values)
    if kind:
        return guess(".", ObservedField((name,), [*values]), False, kind=kind, label=label)
    found = _kind("", values, "")
    made = _made(one, values, found if found in _ELEMENTS else "string", "")
    return (
        replace(made, notes=())
        if made is not None and made.transform is not None
        else one.not_mapped(f"it has values of several types: {_shown(values)}")
    )


def as_key(found: FieldGuess, values: Sequence[Any]) -> FieldGuess:
    """The same field as a key of the stream, which is a text."""
    if found.kind in ("string", "token"):
        return found
    made = _made(replace(found, notes=()), values, "string", "")
    return made if made is not None else found


def as_plain(found: FieldGuess, values: Sequence[Any]) -> FieldGuess:
    """A field that is no time after all, as the number or text that it also is."""
    kind = "string" if any(isinstance(value, str) for value in values) else "long"
    made = _made(replace(found, notes=()), values, kind, "")
    return made if made is not None else found.not_mapped("its values are of no type that fits them all")


def _kind(name: str, values: Sequence[Any], zone: str) -> str:
    if all(isinstance(value, bool) or value in ("true", "false") for value in values):
        return "boolean"
    if all(re.fullmatch(r"[0-9][0-9 -]{11,22}", str(value)) and has_card_number(str(value)) for value in values):
        return "token"
    form = time_form(values)
    if form is not None and (isinstance(values[0], str) or is_time_name(name)) and not (form.is_local and not zone):
        return "timestamp"
    if all(_is_number(value) for value in values):
        if not all(isinstance(value, int) for value in values):
            return "double"
        return "long" if all(-_LONG <= value < _LONG for value in values) else "string"
    return "decimal" if all(isinstance(v, str) and re.fullmatch(_DECIMAL, v.strip(" ")) for v in values) else "string"


def _made(found: FieldGuess, values: Sequence[Any], kind: str, zone: str) -> FieldGuess | None:
    """The field with this kind; None where the values are of another."""
    number = {"transform": "number", "path": found.path}
    texts = [str(value).strip(" ") for value in values]
    match kind:
        case "string":
            if any(isinstance(value, bool) for value in values):
                return found.not_mapped(f"it has true or false and other values: {_shown(values)}")
            mixed = len({_is_number(value) for value in values}) > 1
            notes = (f"{found.name} is a text: some records have numbers there",) if mixed else ()
            if all(_DATE.match(text) for text in texts):
                notes = (f"{found.name} is a text: docs/mappings.md has transforms for times such as {texts[0]}",)
            return replace(
                found, kind=kind, type="string", transform={"transform": "text", "path": found.path}, notes=notes
            )
        case "token":
            notes = (f"{found.name} is a keyed token: {found.raw} has card numbers",)
            return replace(found, kind=kind, transform={"transform": "token", "path": found.path}, notes=notes)
        case "boolean" if all(text in ("True", "False", "true", "false") for text in texts):
            return replace(found, kind=kind, type=kind, transform={"transform": "boolean", "path": found.path})
        case "long" if all(re.fullmatch(r"[+-]?[0-9]{1,19}", text) for text in texts):
            return replace(found, kind=kind, type=kind, transform=number)
        case "double" if all(re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", text) for text in texts):
            return replace(found, kind=kind, type=kind, transform=number)
        case "decimal" if all(re.fullmatch(_NUMBER, text) for text in texts):
            return _decimal(found, texts)
        case "timestamp":
            return _timestamp(found, values, zone)
        case "enum":
            return _enum(found, texts)
    return None


def _decimal(found: FieldGuess, texts: Sequence[str]) -> FieldGuess:
    places = max(2, *(len(text.partition(".")[2]) for text in texts))
    digits = max(len(text.partition(".")[0].lstrip("+-")) for text in texts)
    precision = 18 if digits + places <= 18 else 38
    avro = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": places}
    notes = (f"{found.name} is a decimal with {places} places: it has texts such as {texts[0]}",)
    return replace(found, kind="decimal", type=avro, transform={"transform": "number", "path": found.path}, notes=notes)


def _timestamp(found: FieldGuess, values: Sequence[Any], zone: str) -> FieldGuess | None:
    if (form := time_form(values)) is None or (form.is_local and not zone):
        return None
    spec = {"transform": form.transform["transform"], "path": found.path, **form.transform}
    notes = (f"{found.name} is a time: {found.raw} has {form.words}",)
    return replace(
        found, kind="timestamp", type=_TIME, transform=spec | (in_zone(zone) if form.is_local else {}), notes=notes
    )


def in_zone(zone: str) -> dict[str, str]:
    """How a mapping says where a time without an offset is read."""
    return {"zone": zone} if "/" in zone else {"offset_default": "Z" if zone.upper() in ("UTC", "Z", "GMT") else zone}


def _enum(found: FieldGuess, texts: Sequence[str]) -> FieldGuess | None:
    words = {text: _symbol(text) for text in sorted({*texts})}
    if len(words) > _MOST_SYMBOLS or len({*words.values()}) < len(words):
        return None
    name = "".join(part.capitalize() for part in found.name.split("_")) + "Value"
    avro = {"type": "enum", "name": name, "symbols": [*words.values()]}
    notes = (f"{found.name} has the {len(words)} values that the records have; another one is a dead letter",)
    return replace(
        found,
        kind="enum",
        type=avro,
        transform={"transform": "lookup", "path": found.path, "table": words},
        notes=notes,
    )


def _symbol(text: str) -> str:
    """The symbol of Avro for a value, which has no blanks and does not begin with a digit."""
    symbol = re.sub(r"\W+", "_", text, flags=re.ASCII)
    return symbol if re.match(r"[A-Za-z_]", symbol) else f"_{symbol}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _shown(values: Sequence[Any]) -> str:
    return ", ".join(dict.fromkeys(str(value)[:40] for value in values[:20]))[:120]
