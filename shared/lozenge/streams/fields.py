"""The fields of a stream's own schema: their types, what their values are held to, and a usual value of each.

Besides what Avro knows, a field may say in `event.avsc`:

- `pattern`: a regular expression for the whole of a text;
- `values`: every text that it may be;
- `codes`: `country` (ISO 3166-1 alpha-2) or `currency` (ISO 4217);
- `example`: a usual value, which tests of detectors take where they name none.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from keyword import iskeyword
from typing import Any

ENVELOPE = ("event_id", "event_time", "raw", "traceparent", "stream")
"""The names that the platform gives to what it adds to an event."""
TEXT, DECIMAL, TIME, DATE = "string", "decimal", "timestamp-micros", "date"
RECORD, ARRAY, MAP, ENUM = "record", "array", "map", "enum"
PLAIN = ("boolean", "int", "long", "float", "double", "bytes", TEXT)
CODES = {"country": r"[A-Z]{2}", "currency": r"[A-Z]{3}"}
"""The form of the codes that a field may declare."""
HINTS = ("pattern", "values", "codes", "example")
"""What a field may say besides Avro. None of it is on the wire."""
MOST_DIGITS = 38
_LOGICAL = {DECIMAL: "bytes", TIME: "long", DATE: "int"}
_USUAL_TIME = datetime(2024, 5, 14, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its name, its Avro type without null, and whether it may be null."""

    name: str
    type: Any
    optional: bool
    hints: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """Its logical type, or else its Avro type: "decimal", "string", "record"."""
        if isinstance(self.type, str):
            return self.type
        kind: str = self.type.get("logicalType", self.type["type"])
        return kind

    @property
    def pattern(self) -> str | None:
        """The regular expression that the whole of its text matches, if it declares one or the codes that it holds."""
        return self.hints.get("pattern") or CODES.get(self.hints.get("codes", ""))

    @property
    def values(self) -> frozenset[str] | None:
        """Every text that it may be; None if it does not say so."""
        found = self.type["symbols"] if self.kind == ENUM else self.hints.get("values")
        return None if found is None else frozenset(found)

    @property
    def fields(self) -> list["Field"]:
        """Those of a record."""
        return fields_of(self.type) if self.kind == RECORD else []

    @property
    def element(self) -> "Field":
        """Of an array or a map: what each of its values is, under the name of the whole."""
        of = self.type["items" if self.kind == ARRAY else "values"]
        return _field({"name": self.name, "type": of})

    @property
    def example(self) -> Any:
        """A usual value: the one that it declares, else null if it may be, else one of its type."""
        given = self.hints.get("example")
        if given is not None:
            return Decimal(str(given)) if self.kind == DECIMAL else given
        return None if self.optional else self._usual()

    def _usual(self) -> Any:
        match self.kind:
            case "string":
                stem = self.name.removesuffix("_id")
                return min(self.values) if self.values else f"{stem}-1"
            case "enum":
                return self.type["symbols"][0]
            case "record":
                return {field.name: field.example for field in self.fields}
            case "decimal":
                return Decimal(1)
            case "timestamp-micros":
                return _USUAL_TIME
            case "date":
                return date(2024, 5, 14)
        return {"boolean": False, "float": 1.0, "double": 1.0, "bytes": b"", "array": [], "map": {}}.get(self.kind, 1)


def fields_of(record: Mapping[str, Any]) -> list[Field]:
    """The fields of an Avro record whose `problems` are none."""
    return [_field(each) for each in record["fields"]]


def field_at(fields: Iterable[Field], names: str) -> Field | None:
    """The field to which names joined by dots lead, or what each element of it is; None if there is none.

    Lists and maps have no names of their own: `items.price` is the price of each item.
    """
    found: Field | None = None
    for name in names.split("."):
        found = next((field for field in fields if field.name == name), None)
        if found is None:
            return None
        while found.kind in (ARRAY, MAP):
            found = found.element
        fields = found.fields
    return found


def fields_within(fields: Iterable[Field], above: str = "") -> Iterator[tuple[str, Field]]:
    """The fields and all within them, each by the names that lead to it, as `field_at` takes them."""
    for each in fields:
        name, inner = f"{above}.{each.name}" if above else each.name, each
        yield name, each
        while inner.kind in (ARRAY, MAP):
            inner = inner.element
        yield from fields_within(inner.fields, name)


def _field(declared: Mapping[str, Any]) -> Field:
    kind, optional = declared["type"], False
    if isinstance(kind, list):
        kind, optional = next(each for each in kind if each != "null"), True
    if isinstance(kind, dict) and kind["type"] in PLAIN and "logicalType" not in kind:
        kind = kind["type"]
    return Field(declared["name"], kind, optional, {name: declared[name] for name in HINTS if name in declared})


def on_the_wire(declared: Any) -> Any:
    """A type or field of the team's schema without its hints."""
    if isinstance(declared, list):
        return [on_the_wire(each) for each in declared]
    if not isinstance(declared, dict):
        return declared
    kept = {name: value for name, value in declared.items() if name not in HINTS}
    parts = {name: on_the_wire(kept[name]) for name in ("type", "fields", "items") if name in kept}
    # `values` is the type of a map's values, and a hint only of a field
    return kept | parts | ({"values": on_the_wire(declared["values"])} if declared.get("type") == MAP else {})


def problems(record: Any) -> Iterator[tuple[str, str]]:
    """Everything in a stream's own schema that cannot be run: the field that it is about, and what to do."""
    if not isinstance(record, dict) or record.get("type") != RECORD or not isinstance(record.get("fields"), list):
        yield "", 'it is no record: write {"type": "record", "name": ..., "namespace": ..., "fields": [...]}'
        return
    for name in ("name", "namespace"):
        if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", str(record.get(name, "")), re.ASCII):
            yield "", f"{name} is missing or no name of Avro's, such as {'Authorisation' if name == 'name' else 'pay'}"
    if not record["fields"]:
        yield "", "it has no fields"
    yield from _fields_problems(record, "")
    names = list(_type_names(record))
    yield from (("", f"several types have the name {name}: give each its own") for name in _repeated(names))
    own = {str(each.get("name", "")) for each in record["fields"] if isinstance(each, dict)}
    yield from ((name, "the platform adds a field of this name: choose another") for name in own & {*ENVELOPE})


def _type_names(declared: Any) -> Iterator[str]:
    """The name of each record and enum, with those within."""
    if isinstance(declared, list):
        for each in declared:
            yield from _type_names(each)
    elif isinstance(declared, dict):
        if declared.get("type") in (RECORD, ENUM):
            yield str(declared.get("name"))
        for part in ("type", "fields", "items", "values"):
            yield from _type_names(declared.get(part))


def _repeated(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def _fields_problems(record: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    seen = set[str]()
    for declared in record["fields"]:
        if not isinstance(declared, dict) or not isinstance(declared.get("name"), str) or "type" not in declared:
            yield prefix.rstrip("."), 'a field is no object with "name" and "type"'
            continue
        name = declared["name"]
        path = prefix + name
        if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) or iskeyword(name):
            yield path, "a name has the form [A-Za-z][A-Za-z0-9_]* and is no keyword of Python"
        if name.lower() in seen:
            yield path, "another field has this name; upper and lower case are one"
        seen.add(name.lower())
        yield from ((path, problem) for problem in _hint_problems(declared))
        yield from _type_problems(declared["type"], path, optional=True)
        if isinstance(declared["type"], list) and "default" not in declared:
            yield path, 'an optional field needs "default": null, so that older records can be read'


def _type_problems(kind: Any, path: str, *, optional: bool = False) -> Iterator[tuple[str, str]]:
    if isinstance(kind, list):
        if not optional or len(kind) != 2 or kind[0] != "null":
            yield path, 'of unions only ["null", TYPE] is read, and only as the type of a field'
        else:
            yield from _type_problems(kind[1], path)
        return
    declared: Any = {"type": kind} if isinstance(kind, str) else kind
    base = declared.get("type") if isinstance(declared, dict) else None
    logical = declared.get("logicalType") if isinstance(declared, dict) else None
    if logical is not None:
        if _LOGICAL.get(str(logical)) != base:
            known = ", ".join(f"{name} of {of}" for name, of in _LOGICAL.items())
            yield path, f"the logical type {logical} of {base} is not read, only {known}"
        elif logical == DECIMAL and not _fits(declared.get("precision"), declared.get("scale", 0)):
            yield path, f"a decimal has a precision of 1 to {MOST_DIGITS} and a scale that is no larger"
    elif base == RECORD and isinstance(declared.get("fields"), list) and declared.get("name"):
        yield from _fields_problems(declared, f"{path}.")
    elif base == ENUM and isinstance(declared.get("symbols"), list) and declared["symbols"] and declared.get("name"):
        return
    elif base == ARRAY and "items" in declared:
        yield from _type_problems(declared["items"], path)
    elif base == MAP and "values" in declared:
        yield from _type_problems(declared["values"], path)
    elif base not in PLAIN:
        known = ", ".join((*PLAIN, *_LOGICAL))
        yield path, f"the type {kind!r} is not read: it is {known}, or a complete record, enum, array or map"


def _fits(precision: Any, scale: Any) -> bool:
    whole = all(isinstance(each, int) and not isinstance(each, bool) for each in (precision, scale))
    return whole and 1 <= precision <= MOST_DIGITS and 0 <= scale <= precision


def _hint_problems(declared: Mapping[str, Any]) -> Iterator[str]:
    pattern, values, codes = (declared.get(name) for name in ("pattern", "values", "codes"))
    kinds = declared["type"] if isinstance(declared["type"], list) else [declared["type"]]
    text = any(kind == TEXT or (isinstance(kind, dict) and kind.get("type") == TEXT) for kind in kinds)
    if not text and (pattern, values, codes) != (None, None, None):
        yield "pattern, values and codes are for fields of type string"
        return
    if codes is not None and codes not in CODES:
        yield f"codes is {codes!r}, and there are {', '.join(CODES)}"
    if values is not None and not (isinstance(values, list) and values and all(isinstance(v, str) for v in values)):
        yield "values is a list of texts"
    try:
        found = re.compile(pattern or CODES.get(str(codes), ""), re.ASCII) if pattern or codes else None
    except (re.error, TypeError) as error:
        yield f"pattern is no regular expression: {error}; upstream runs it in Java, and commands in Python"
        return
    example = declared.get("example")
    if text and example is not None:
        wrong_word = isinstance(values, list) and example not in values
        if not isinstance(example, str) or (found is not None and not found.fullmatch(example)) or wrong_word:
            yield f"the example {example!r} is no value that the field may have"
