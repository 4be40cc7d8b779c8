"""Values of a source as texts of a column's type: what a CSV file would have for them."""

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import islice
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from lozenge.contracts.card_numbers import masked
from lozenge.contracts.display_text import shortened
from lozenge.platform_tables.column_types import cast, misfits, sql_name

_QUOTED = 60
MOST_MISFITS = 1_000
"""So many wrong values of a part are looked for, one by one."""


def texts_of(values: Sequence[Any], kind: pa.DataType) -> tuple[list[str | None], dict[int, str]]:
    """The text of each value of the type `kind`, and why the others are none, by their place.

    Equal values have equal texts. A text is a value of another type if a CSV file could have it so: databases such as
    SQLite have no decimals and no times. But a number is no text: it may have lost its leading zeros.
    """
    wrong = dict[int, str]()
    texts = [_text(value, kind) for value in values]
    for place in (place for place, text in enumerate(texts) if text is _NONE):
        wrong[place] = _misfit(values[place], kind)
        texts[place] = None
    try:
        typed = cast(pa.array(texts, pa.string()), kind)
    except pa.ArrowInvalid:
        wrong |= {place: _misfit(texts[place], kind) for place in islice(misfits(texts, kind), MOST_MISFITS)}
        return texts, wrong
    return list(_canonical(typed, kind)), wrong


_NONE: Any = object()
"""In place of the text of a value that has none."""


def _text(value: Any, kind: pa.DataType) -> Any:
    """Its text, None for null, `_NONE` for what is no value of the type."""
    match value:
        case None | str():
            return value
        case UUID():
            return str(value)
        case _ if pa.types.is_string(kind):
            return _NONE
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return repr(value)
        case Decimal():
            return format(value, "f")
        case datetime() | date():
            return value.isoformat()
    return _NONE


def _canonical(typed: Any, kind: pa.DataType) -> Iterator[str | None]:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        local = typed.cast(pa.int64()).cast(pa.timestamp("us")).cast(pa.string())  # needs no database of zones
        typed = pc.binary_join_element_wise(local, "Z", "")
    yield from typed.cast(pa.string()).to_pylist()


def _misfit(value: Any, kind: pa.DataType) -> str:
    """Why it is no value of the type, without card numbers."""
    quoted = repr(shortened(masked(str(value)), _QUOTED))
    return f"{quoted} ({type(value).__name__}), which is no {sql_name(kind)}"
