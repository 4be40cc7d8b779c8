"""A row of an aggregate passes through its topic with every column of an alert."""

import io
from datetime import UTC, datetime
from typing import Any

import fastavro

from lozenge.job.drivers import aggregate_changelog
from lozenge.job.drivers.aggregate_changelog import ChangedRow

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
ROW: dict[str, Any] = {
    "entity": "card_1",
    "severity": "high",
    "score": 0.5,
    "title": None,
    "reason": "five uses in a minute",
    "evidence": ["event_1", None],
    "values": {"n": "5", "none": None},
    "event_time": AT,
    "trigger": {"partition": 1, "offset": 2},
    "labels": {},
    "dedup_key": "1772366400000000/5",
    "closes": AT,
    "traceparent": None,
    "arrived": None,
}


def test_a_row_is_read_with_the_columns_that_were_written() -> None:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(aggregate_changelog._SCHEMA), ROW)
    assert ChangedRow("id", out.getvalue()).columns() == ROW
