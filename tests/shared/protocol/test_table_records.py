"""The records of a table, and its version."""

import pytest

from lozenge.protocol.content_version import changed_of
from lozenge.protocol.table_records import (
    COLUMNS_KEY,
    TableColumns,
    TableRecord,
    columns_of,
    decode,
    decoded_row,
    encoded_row,
    row_key,
    rows_of,
    version,
)

COLUMNS = TableColumns("country string, most int", ("country",))
ROW = encoded_row({"country": "DE", "most": None})


def test_a_record_is_the_columns_or_a_row() -> None:
    assert decode(COLUMNS_KEY.encode(), COLUMNS.encoded()) == COLUMNS
    assert decode(row_key(["DE"]).encode(), ROW) == ROW
    assert decoded_row(ROW) == {"country": "DE", "most": None}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"DE", ROW),
        (b'["FR"]', ROW),
        (b'["DE"]', b'{"country": "DE", "most": 1}'),
        (b'["DE"]', b"x"),
        (b'["DE"]', b"{}"),
        (b"[]", ROW),
        (b"columns", ROW),
        (b"\xff", ROW),
    ],
)
def test_any_other_record_is_none_of_a_table(key: bytes, value: bytes) -> None:
    with pytest.raises(ValueError):
        decode(key, value)


def test_a_version_depends_on_rows_and_columns_and_not_on_their_order() -> None:
    records: dict[str, TableRecord] = {COLUMNS_KEY: COLUMNS, row_key(["DE"]): ROW, row_key(["FR"]): ROW}
    assert version(7, records) == version(7, dict(reversed(records.items())))
    narrower: dict[str, TableRecord] = {**records, COLUMNS_KEY: TableColumns("country string", ("country",))}
    empty: dict[str, TableRecord] = {COLUMNS_KEY: COLUMNS}
    others = (narrower, empty)
    assert len({version(7, records), *(version(7, other) for other in others)}) == 3
    assert changed_of(version(7, records)) == 7
    assert (columns_of(records), [*rows_of(records)]) == (COLUMNS, ['["DE"]', '["FR"]'])
    assert columns_of({}) is None
