"""What Python reads becomes the rows of Spark's source, and a time that no clock shows is a dead letter."""

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lozenge.streams.reasons import CLOCK
from lozenge_upstream.normalise.normaliser import normalise
from lozenge_upstream.normalise.raw_rows import frame_of, row_of
from tests.upstream.samples import JSON, KEY, flat

NOW = 1_772_366_400_000


def message(offset: int, milliseconds: int, **more: Any) -> Any:
    values = {"topic": JSON.topic, "partition": 2, "offset": offset, "timestamp": (1, milliseconds)}
    values |= {"key": b"card", "value": flat(txn_id=f"t-{offset}"), "headers": [("origin", b"\x00\xff"), ("n", None)]}
    return SimpleNamespace(**{name: lambda value=value: value for name, value in (values | more).items()})


@pytest.mark.parametrize(
    ("unit", "milliseconds", "reason"),
    [
        ("nanoseconds", NOW * 1_000_000, CLOCK),
        ("the first that Spark cannot read", 2**63 // 1000 + 1, CLOCK),
        ("the largest", 2**63 - 1, CLOCK),
        ("microseconds", NOW * 1000, CLOCK),
        ("seconds", NOW // 1000, CLOCK),
        ("zero", 0, CLOCK),
        ("none", -1, CLOCK),
        ("the least", -(2**63), CLOCK),
        ("milliseconds", NOW, None),
    ],
)
def test_a_record_with_a_timestamp_in_any_unit_is_what_it_is_by_sparks_source(
    upstream_spark: SparkSession, unit: str, milliseconds: int, reason: str | None
) -> None:
    raw = frame_of(upstream_spark, [message(7, milliseconds)])
    [row] = normalise(raw, JSON, KEY).select("reason", "value", "key", "headers", F.unix_millis("timestamp")).collect()
    assert row.reason == reason, unit
    assert (bytes(row.value), bytes(row.key)) == (flat(txn_id="t-7"), b"card")
    assert [(each.key, each.value and bytes(each.value)) for each in row.headers] == [
        ("origin", b"\x00\xff"),
        ("n", None),
    ]
    assert reason is not None or row[-1] == milliseconds


def test_a_tombstone_without_key_and_headers_has_none_of_them() -> None:
    row = row_of(message(3, NOW, value=None, key=None, headers=None, timestamp=(2, NOW)))
    assert (row[0], row[3], row[4], row[7]) == (None, 1, None, None)
