"""A person who writes a mapping sees what upstream would make of a record."""

from datetime import UTC, date, datetime
from decimal import Decimal

from pyspark.sql import SparkSession

from lozenge_upstream.stream_samples.tried_record import TriedRecord, as_json, try_records
from tests.upstream.samples import ISO, JSON, KEY, NOW, Raw, flat, iso, normalised


def test_an_event_is_shown_field_by_field_as_upstream_makes_it(upstream_spark: SparkSession) -> None:
    [tried] = try_records(upstream_spark, JSON, [(flat(), NOW)], KEY)
    [row] = normalised(upstream_spark, [Raw(flat())])
    assert tried.event is not None
    assert tried.event == {
        **{name: row[name] for name in ("event_id", "card_id", "account_id", "merchant_id", "terminal_id", "mcc")},
        **{name: row[name] for name in ("transaction_id", "country", "currency", "channel", "auth_result")},
        "amount": Decimal("12.5"),
        "event_time": datetime(2026, 3, 1, 11, 59, 58, 500000, UTC),
    }
    shown = tried.shown()["event"]
    assert (shown["amount"], shown["event_time"]) == ("12.5", "2026-03-01T11:59:58.500000+00:00")


def test_records_come_in_order_each_with_its_reasons_or_what_skips_it(upstream_spark: SparkSession) -> None:
    records = [iso(mti="0800"), b"{", iso(de4="x", de49="x"), iso(mti="0400")]
    tried = try_records(upstream_spark, ISO, [(record, NOW) for record in records], KEY)
    assert tried[:3] == [
        TriedRecord(None, skipped="auth_iso8583/no_payment"),
        TriedRecord(None, ("invalid-json",)),
        TriedRecord(None, ("format:amount", "unknown:currency")),
    ]
    assert tried[3].event is not None
    assert (tried[3].event["amount"], "account_id" in tried[3].event) == (Decimal("-12.5"), False)
    assert "\x1f" not in str(tried[3].shown()), "an identity of several fields is shown as people can read it"


def test_values_are_shown_as_json_has_them_and_without_card_numbers() -> None:
    nested = {"sums": [Decimal("1.50"), None], "day": date(2026, 3, 1), "blob": b"\xff", "on": True, "n": 1.5}
    assert as_json(nested | {"note": "to 4000000000000002"}) == {
        "sums": ["1.5", None],
        "day": "2026-03-01",
        "blob": "ff",
        "on": True,
        "n": 1.5,
        "note": "to 400000******0002",
    }
