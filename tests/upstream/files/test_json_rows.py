import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lozenge_upstream.files.json_rows import json_rows, texts

MOMENT = datetime(2026, 11, 28, 16, 30, 0, 250_000, UTC)


def _row(**columns: Any) -> dict[str, object]:
    found: dict[str, object] = json.loads(json_rows(pa.record_batch(columns))[0])
    return found


def test_a_decimal_is_a_text_with_the_digits_of_its_scale() -> None:
    assert _row(amount=pa.array([Decimal("12.50")], pa.decimal128(12, 2))) == {"amount": "12.50"}


def test_an_integer_keeps_digits_that_a_double_loses() -> None:
    assert b"9007199254740993" in json_rows(pa.record_batch({"n": pa.array([2**53 + 1])}))[0]


def test_a_time_with_a_zone_is_in_utc_and_says_so() -> None:
    berlin = pa.array([MOMENT], pa.timestamp("us", "Europe/Berlin"))
    assert _row(at=berlin) == {"at": "2026-11-28T16:30:00.250000Z"}


def test_a_time_without_a_zone_has_none_in_json() -> None:
    assert _row(at=pa.array([MOMENT.replace(tzinfo=None)], pa.timestamp("ms"))) == {"at": "2026-11-28T16:30:00.250"}


def test_dates_times_bytes_and_flags_have_their_usual_texts() -> None:
    row = _row(
        day=pa.array([date(2026, 11, 28)]),
        at=pa.array([time(16, 30)], pa.time32("s")),
        raw=pa.array([b"\x00\xff"]),
        flag=pa.array([True]),
    )
    assert row == {"day": "2026-11-28", "at": "16:30:00", "raw": "AP8=", "flag": True}


def test_what_json_cannot_hold_is_a_text() -> None:
    row = _row(nan=pa.array([float("nan")]), inf=pa.array([float("-inf")]), nested=pa.array([[float("nan")]]))
    assert row == {"nan": "nan", "inf": "-inf", "nested": ["nan"]}


def test_a_null_is_null_in_a_column_of_any_type() -> None:
    kinds = [pa.string(), pa.int64(), pa.decimal128(5, 2), pa.timestamp("us"), pa.binary(), pa.list_(pa.int8())]
    columns = {str(kind): pa.array([None], kind) for kind in kinds}
    assert set(_row(**columns).values()) == {None}


def test_nested_values_stay_nested() -> None:
    kinds: dict[str, Any] = {
        "city": pa.string(),
        "at": pa.timestamp("us", "UTC"),
        "sums": pa.list_(pa.decimal128(5, 2)),
    }
    kind = pa.struct(kinds)
    place = pa.array([{"city": "Köln", "at": MOMENT, "sums": [Decimal("1.20")]}], kind)
    assert _row(place=place) == {"place": {"city": "Köln", "at": "2026-11-28T16:30:00.250000Z", "sums": ["1.20"]}}


def test_a_dictionary_column_has_its_values() -> None:
    assert _row(country=pa.array(["DE"]).dictionary_encode()) == {"country": "DE"}


@given(st.lists(st.text(max_size=8), min_size=1), st.text(min_size=1, max_size=5))
def test_any_texts_come_back_as_they_were(values: list[str], name: str) -> None:
    usable = [value.encode("utf-8", "replace").decode() for value in values]
    name = name.encode("utf-8", "replace").decode()
    rows = json_rows(pa.record_batch({name: pa.array(usable)}))
    assert [json.loads(row) for row in rows] == [{name: value} for value in usable]


def test_a_text_that_is_not_utf8_is_refused() -> None:
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    with pytest.raises(pa.ArrowInvalid, match="UTF8"):
        json_rows(pa.record_batch({"text": broken}))


def test_a_key_is_a_text_without_quotes() -> None:
    assert texts(pa.array([7, None])) == [b"7", None]
    assert texts(pa.array(['"quoted"', "x"])) == [b'"quoted"', b"x"]
    assert texts(pa.array([Decimal("1.50")], pa.decimal128(5, 2))) == [b"1.50"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("texts_of_it", [["a", "b"], ["a", None], ['say "a"', "\n"], ["", None], [None, None]])
def test_a_text_is_the_same_json_whatever_else_is_in_its_column(
    kind: pa.DataType, texts_of_it: list[str | None]
) -> None:
    columns = {"first": pa.array(texts_of_it, kind), "n": pa.array([1, None]), "last": pa.array(texts_of_it, kind)}
    found = [json.loads(row) for row in json_rows(pa.record_batch(columns))]
    assert found == [{"first": text, "n": n, "last": text} for text, n in zip(texts_of_it, [1, None], strict=True)]
