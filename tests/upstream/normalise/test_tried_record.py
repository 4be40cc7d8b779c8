"""A person who writes a mapping sees what upstream would make of a record."""

from datetime import UTC, datetime

from pyspark.sql import SparkSession

from lozenge_upstream.normalise.tried_record import TriedRecord, try_records
from tests.upstream.samples import ISO, JSON, KEY, NOW, Raw, flat, iso, normalised


def test_an_event_is_shown_field_by_field_as_upstream_makes_it(upstream_spark: SparkSession) -> None:
    [tried] = try_records(upstream_spark, JSON, [flat()], KEY, NOW)
    [row] = normalised(upstream_spark, [Raw(flat())])
    assert tried.event is not None
    assert tried.event == {
        **{name: row[name] for name in ("event_id", "card_id", "account_id", "merchant_id", "terminal_id", "mcc")},
        **{name: row[name] for name in ("transaction_id", "country", "currency", "channel", "auth_result")},
        "amount": "12.5",
        "event_time": datetime(2026, 3, 1, 11, 59, 58, 500000, UTC).isoformat(),
    }


def test_records_come_in_order_each_with_its_reasons_or_what_skips_it(upstream_spark: SparkSession) -> None:
    tried = try_records(upstream_spark, ISO, [iso(mti="0800"), b"{", iso(de4="x", de49="x"), iso(mti="0400")], KEY, NOW)
    assert tried[:3] == [
        TriedRecord(None, skipped="auth_iso8583/no_payment"),
        TriedRecord(None, ("invalid-json",)),
        TriedRecord(None, ("format:amount", "unknown:currency")),
    ]
    assert tried[3].event is not None
    assert (tried[3].event["amount"], "account_id" in tried[3].event) == ("-12.5", False)
    assert "\x1f" not in str(tried[3].event), "an identity of several fields is shown as people can read it"
