"""The fast conversion of Arrow columns returns the same values as pyarrow."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lozenge.job.operators import rows

MOMENT = datetime(2026, 3, 29, 1, 59, 59, 999_999, tzinfo=UTC)
COLUMNS: dict[str, tuple[Any, list[Any]]] = {
    "text": (pa.string(), ["a", None, "c"]),
    "full": (pa.timestamp("us", "UTC"), [MOMENT, MOMENT, MOMENT]),
    "gaps": (pa.timestamp("us", "UTC"), [MOMENT, None, MOMENT]),
    "coarse": (pa.timestamp("s", "UTC"), [MOMENT.replace(microsecond=0)] * 3),
    "amount": (pa.decimal128(12, 2), [Decimal("1.50"), None, Decimal("1.50")]),
    "values": (pa.map_(pa.string(), pa.string()), [[("amount", "1.50")], [], None]),
    "trigger": (pa.struct([("partition", pa.int32())]), [{"partition": 1}, None, {"partition": 2}]),
}


def table() -> pa.Table:
    return pa.table({name: pa.array(values, kind) for name, (kind, values) in COLUMNS.items()})


def test_rows_equal_those_of_pyarrow() -> None:
    assert list(rows.rows(table())) == table().to_pylist(maps_as_pydicts="lossy")


def test_rows_of_several_chunks_keep_their_order() -> None:
    both = pa.concat_tables([table(), table()])
    assert both.column("text").num_chunks == 2
    assert list(rows.rows(both)) == [*table().to_pylist(maps_as_pydicts="lossy")] * 2


def test_a_table_without_rows_has_none() -> None:
    assert list(rows.rows(table().slice(0, 0))) == []


def test_a_time_that_python_cannot_hold_is_none_and_the_others_stay() -> None:
    micros = pa.array([0, 1_772_366_400_000_000_000, None], pa.int64())
    for column in (micros.slice(0, 2), micros):
        found = rows.values(column.cast(pa.timestamp("us", "UTC")))
        assert list(found) == [datetime(1970, 1, 1, tzinfo=UTC), None, None][: len(column)]
