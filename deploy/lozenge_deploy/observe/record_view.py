"""A record for people, as data that prints as JSON. Whatever bytes it has, it is shown: nothing here raises.

Card numbers and secrets are hidden wherever they are, unless the caller wants them and has recorded that.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from lozenge.contracts.avro import MAGIC, Codec, schema_id
from lozenge.contracts.display_text import shown, shown_data
from lozenge.contracts.schemas import Schema, packaged
from lozenge.errors import DecodeError
from lozenge.moments import written_at
from lozenge.nesting import is_flat

Headers = Sequence[tuple[str, bytes | str | None]] | Mapping[str, bytes | str | None] | None


def decoded(value: bytes | None, schemas: Sequence[Schema] = (), *, card_numbers: bool = False) -> Any:
    """A record's value as data: Avro of a contract, JSON, text, or else its bytes in hex; None for a tombstone.

    `schemas` are those of events and other contracts that are not packaged. JSON that no data shows as it is written is
    text. With `card_numbers` it shows these too.
    """
    if value is None:
        return None
    found = _data(value, schemas)
    if found is None:
        return text(value, card_numbers=card_numbers)
    return found[0] if card_numbers else shown_data(found[0])


def _data(value: bytes, schemas: Sequence[Schema]) -> tuple[Any] | None:
    """The data in Avro or JSON; None if there is none, or too deep to be shown."""
    if value[:1] == bytes([MAGIC]):
        ours = packaged()
        try:
            schema = {each.id: each for each in (*schemas, *ours)}[schema_id(value)]
            codec = Codec.of(schema.name) if schema.name in {each.name for each in ours} else Codec(schema)
            return (_plain(codec.decode(value)),)
        except (KeyError, DecodeError):
            return None
    try:
        # of bytes Python would also read UTF-16 and a byte order mark, which the platform refuses
        found = json.loads(value.decode(), parse_float=_number, parse_constant=str, object_pairs_hook=_object)
    except (ValueError, RecursionError, MemoryError):  # a number of thousands of digits is a ValueError
        return None
    # as data, `null` would look like a tombstone
    return (found,) if found is not None and is_flat(found) else None


def _number(digits: str) -> float | str:
    """A number of JSON; as its text, if no float has all of its digits."""
    value = float(digits)
    try:
        return value if Decimal(repr(value)) == Decimal(digits) else digits
    except ArithmeticError:  # its exponent is beyond any calculation
        return digits


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; raises ValueError for one that has a name twice: as data, it would hide a value."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found


def text(value: bytes | str | None, *, card_numbers: bool = False) -> str | None:
    """Bytes as text, or else in hex; with `card_numbers` it shows these too."""
    if value is None:
        return None
    hide = str if card_numbers else shown
    if isinstance(value, str):
        return hide(value)
    try:
        if value[:1] != bytes([MAGIC]):
            return hide(value.decode())
    except UnicodeDecodeError:
        pass
    return hide(value.decode("latin-1")).encode("latin-1").hex()


def shown_headers(headers: Headers, *, card_numbers: bool = False) -> dict[str, Any]:
    """Names and values of headers; a list of them for a name that comes several times.

    With `card_numbers` it shows these too.
    """
    values: dict[str, list[str | None]] = {}
    for name, value in headers.items() if isinstance(headers, Mapping) else headers or ():
        values.setdefault(str(text(name, card_numbers=card_numbers)), []).append(text(value, card_numbers=card_numbers))
    found = {name: each[0] if len(each) == 1 else each for name, each in values.items()}
    return found if card_numbers else dict(shown_data(found))


def time_of(message: Message) -> str | None:
    """When a record was written, for people; None if it does not say so."""
    kind, milliseconds = message.timestamp()
    return None if kind == TIMESTAMP_NOT_AVAILABLE else written_at(milliseconds)


def _plain(record: Any) -> Any:
    """Times and decimals as text, so that it can be printed as JSON."""
    if isinstance(record, dict):
        return {name: _plain(value) for name, value in record.items()}
    if isinstance(record, list):
        return [_plain(value) for value in record]
    if isinstance(record, datetime):
        return record.isoformat()
    return record if isinstance(record, str | int | float | bool | None) else str(record)
