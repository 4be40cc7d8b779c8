"""The records of a table of the platform: its columns, and its rows by their key.

The key of a row is a JSON array of the values of its key columns; the value is a JSON object. Each value is a text, as
a CSV file has it, or null. So no precision is lost, and a reader in any language needs no more than JSON. The columns
are a record of their own, written in the transaction of the rows that have them.
"""

from collections.abc import Mapping, Sequence

import msgspec

from lozenge.protocol import content_version

COLUMNS_KEY = "columns"
"""The key of the columns: no row has it, since the key of a row is an array."""
LONGEST_ROW = 64 * 1024
"""Bytes of a row at most."""


class TableColumns(msgspec.Struct, frozen=True):
    """The columns of every row as Spark DDL, and those that identify a row."""

    columns: str
    key: tuple[str, ...]

    def encoded(self) -> bytes:
        """The value of its record."""
        return msgspec.json.encode(self)


TableRecord = TableColumns | bytes
"""The columns, or a row as it is in its record: a table may have very many of them."""


def row_key(values: Sequence[str]) -> str:
    """The key of the row with these values in its key columns."""
    return msgspec.json.encode(values).decode()


def encoded_row(row: Mapping[str, str | None]) -> bytes:
    """The value of the record of a row: rows with equal values, in the order of the columns, have equal bytes."""
    return msgspec.json.encode(row)


def decoded_row(row: bytes) -> dict[str, str | None]:
    """The texts of a row by column; raises ValueError."""
    return _ROW.decode(row)


def decode(key: bytes, value: bytes) -> TableRecord:
    """What is in a record; raises ValueError for any record that is none of a table."""
    if key.decode() == COLUMNS_KEY:
        return _COLUMNS.decode(value)
    named = _KEY.decode(key)
    if not named or not {*named} <= {*decoded_row(value).values()}:
        raise ValueError(f"its key is {key!r}, and the row has other values")
    return value


_COLUMNS, _KEY = msgspec.json.Decoder(TableColumns), msgspec.json.Decoder(list[str])
_ROW = msgspec.json.Decoder(dict[str, str | None])


def columns_of(records: Mapping[str, TableRecord]) -> TableColumns | None:
    """The columns of a table; None if nothing was loaded yet."""
    found = records.get(COLUMNS_KEY)
    return found if isinstance(found, TableColumns) else None


def rows_of(records: Mapping[str, TableRecord]) -> dict[str, bytes]:
    """The rows by key, in the order of the keys."""
    return {key: row for key, row in sorted(records.items()) if isinstance(row, bytes)}


def version(changed: int, records: Mapping[str, TableRecord]) -> str:
    """The version that a table has after the records before offset `changed`, such as "137-9f31c2d4ab01"."""
    ordered = (record for _, record in sorted(records.items()))
    return content_version.version(changed, (row if isinstance(row, bytes) else row.encoded() for row in ordered))
