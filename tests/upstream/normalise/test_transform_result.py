"""No text that a sender writes ends the query, however long it is and whatever a mapping asks of it.

Java matches alternatives and groups of several lengths by recursion. A stack that overflows ends the JVM, and so does
each restart at the same record.
"""

from typing import Any

from pyspark.sql import Row, SparkSession

from lozenge_upstream.normalise.mapping_files import mapping_of
from tests.upstream.samples import JSON, Raw, flat, normalised

LONG = 100_000


def read(spark: SparkSession, values: list[bytes], **fields: dict[str, Any]) -> list[Row]:
    """What becomes of records by the mapping of AUTH-JSON with other transforms of some fields."""
    own = {name: spec.model_dump(exclude_unset=True) for name, spec in JSON.fields.items()}
    declared: dict[str, object] = {"source": "long", "topic": "OTHER", "keyed_by": "", "fields": own | fields}
    return normalised(spark, [Raw(value) for value in values], mapping_of(declared, JSON.stream))


def test_the_pattern_of_a_condition_holds_for_no_long_text(upstream_spark: SparkSession) -> None:
    asked = {"path": "note", "pattern": "(a|b)*"}
    channel = {"transform": "case", "default": "pos", "of": [{"value": "atm", "when": [asked]}]}
    rows = read(upstream_spark, [flat(note="ab" * size) for size in (1, 500, LONG)], channel=channel)
    assert [(row.reason, row.channel) for row in rows] == [(None, "atm"), (None, "atm"), (None, "pos")]


def test_a_number_of_many_groups_is_no_amount(upstream_spark: SparkSession) -> None:
    amount = {"transform": "decimal", "path": "amount", "thousands": ",", "accounting": True, "symbols": ["$"]}
    amounts = ["1,234,567.50", "1" + ",234" * LONG, "(" * LONG, "$" * LONG, "-" + "1" * LONG, "1" + " " * LONG + "$"]
    rows = read(upstream_spark, [flat(amount=each) for each in amounts], amount=amount)
    assert [row.reason for row in rows] == [None, *(row.reason for row in rows[1:])]
    assert all(row.reason in ("format:amount", "digits:amount") for row in rows[1:]), rows[1:]


def test_a_text_of_escapes_and_one_that_is_too_long_are_dead_letters(upstream_spark: SparkSession) -> None:
    escapes = flat(note="@").replace(b"@", b"\\\\" * LONG + b"\\ud83d")
    rows = read(upstream_spark, [escapes, flat(merchant="x" * LONG), flat(merchant="4" * LONG), flat(mcc="1" * LONG)])
    assert [row.reason for row in rows] == ["lone-surrogate", "format:merchant_id", "format:merchant_id", "format:mcc"]


def test_a_time_of_any_length_is_no_time(upstream_spark: SparkSession) -> None:
    times = ["2026-03-01T12:00:00." + "0" * LONG + "Z", "2026" * LONG, "T" * LONG, "2026-03-01T12:00:00" + "Z" * LONG]
    rows = read(upstream_spark, [flat(ts=each) for each in times])
    assert {row.reason for row in rows[1:]} == {"format:event_time"}
    assert rows[0].reason in (None, "format:event_time")
