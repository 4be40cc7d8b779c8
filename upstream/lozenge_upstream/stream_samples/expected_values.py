"""What a sample expects of a field, in the type of the field, and where an event has something else."""

import struct
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

from lozenge.streams.fields import ARRAY, MAP, RECORD, Field

ABSENT = "absent"
"""How a field is shown that an event does not have."""


class FieldDifference(NamedTuple):
    """A field that is not as expected: its path, and both values as an event has them; None for none."""

    field: str
    expected: Any
    got: Any


def expected_value(field: Field, written: Any) -> Any:
    """The value that a sample writes for a field, as an event has it; raises ValueError with what to write instead.

    A decimal is a number or its text. A time is one of TOML or ISO 8601, with an offset. Bytes are hexadecimal.
    """
    match field.kind, written:
        case (("string" | "enum"), str()):
            return written
        case "boolean", bool():
            return written
        case (("int" | "long" | "double"), int() | float()) if not isinstance(written, bool):
            return written
        case "float", int() | float() if not isinstance(written, bool):
            return struct.unpack("f", struct.pack("f", written))[0]
        case "decimal", int() | float() | str() if not isinstance(written, bool):
            return _decimal(field, str(written))
        case "timestamp-micros", datetime() | str():
            return _time(field, written)
        case "date", date() | str() if not isinstance(written, datetime):
            return _parsed(field, lambda: date.fromisoformat(str(written)))
        case "bytes", str():
            return _parsed(field, lambda: bytes.fromhex(written))
        case "record", dict():
            return _record(field, written)
        case "array", list():
            return [expected_value(field.element, each) for each in written]
        case "map", dict():
            return {name: expected_value(field.element, each) for name, each in written.items()}
    shown = written.isoformat() if isinstance(written, date) else repr(written)
    raise ValueError(f"{field.name} is {_kind(field)}, and not {shown}")


def differences(field: Field, expected: Any, got: Any, path: str = "") -> Iterator[FieldDifference]:
    """Where a value is not the expected one. Of a record only the fields that the sample names are compared."""
    path = path or field.name
    if field.kind == RECORD and isinstance(got, dict):
        inner = {each.name: each for each in field.fields}
        for name, part in expected.items():
            yield from differences(inner[name], part, got.get(name), f"{path}.{name}")
    elif field.kind == ARRAY and isinstance(got, list) and len(got) == len(expected):
        for at, (part, of_event) in enumerate(zip(expected, got, strict=True)):
            yield from differences(field.element, part, of_event, f"{path}[{at}]")
    elif field.kind == MAP and isinstance(got, dict) and got.keys() == expected.keys():
        for name, part in expected.items():
            yield from differences(field.element, part, got[name], f"{path}.{name}")
    elif expected != got:
        yield FieldDifference(path, expected, got)


def _record(field: Field, written: dict[str, Any]) -> dict[str, Any]:
    inner = {each.name: each for each in field.fields}
    if unknown := sorted(written.keys() - inner.keys()):
        raise ValueError(f"{field.name} has no field {', '.join(unknown)}; it has {', '.join(inner)}")
    return {name: expected_value(inner[name], part) for name, part in written.items()}


def _decimal(field: Field, text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError:
        raise ValueError(f"{field.name} is {_kind(field)}, and not {text!r}") from None


def _time(field: Field, written: datetime | str) -> datetime:
    found: datetime = (
        written if isinstance(written, datetime) else _parsed(field, lambda: datetime.fromisoformat(written))
    )
    if found.tzinfo is None:
        raise ValueError(f"{field.name} is {_kind(field)}, and {written} has no offset: end it with Z")
    return found.astimezone(UTC)


def _parsed(field: Field, parse: Any) -> Any:
    try:
        return parse()
    except ValueError as error:
        raise ValueError(f"{field.name} is {_kind(field)}: {error}") from None


def _kind(field: Field) -> str:
    words = {
        "string": "a text",
        "enum": "a text",
        "boolean": "true or false",
        "decimal": 'a decimal, such as "12.50"',
        "timestamp-micros": "a time, such as 2026-03-01T12:00:00Z",
        "date": "a date, such as 2026-03-01",
        "bytes": "bytes in hexadecimal digits",
        "record": "a record, a table of TOML",
        "array": "a list",
        "map": "a map, a table of TOML",
    }
    return words.get(field.kind, f"a number ({field.kind})")
