"""What is written: byte-equal to the Python side of each contract, and a pure function of the raw record."""

import hmac
import json
import random
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from lozenge.contracts import headers, ids
from lozenge.contracts.dead_letters import dead_letter_headers
from lozenge.contracts.money import MINOR_DIGITS
from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.topics import Topics
from lozenge.errors import DecodeError
from lozenge_upstream.normalise.countries import ALPHABETIC as COUNTRIES
from lozenge_upstream.normalise.output_records import in_order
from tests.streams import AUTH, event_codec
from tests.upstream.samples import COPIES, KEY, NOW, PAN, Raw, flat, target, written

TOPICS = Topics()

EVENTS = 2_000
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
DEAD = TOPICS.dead_letters("upstream")


def token(pan: str, key: bytes = KEY) -> str:
    """The card's token as Python's own HMAC gives it."""
    return "card_" + hmac.digest(key, pan.encode(), "sha256").hex()[:24]


def _made_up(number: int, rng: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """A raw record's fields and the event that must come of them."""
    currency = rng.choice(sorted(MINOR_DIGITS))
    digits = MINOR_DIGITS[currency]
    units = rng.choice([0, 1, 127, 128, 255, 256, 32767, 32768, rng.randrange(10 ** rng.randrange(1, 14))])
    amount = Decimal(units if rng.random() < 0.7 else -units).scaleb(-digits)
    time = NOW - timedelta(microseconds=rng.randrange(10**15))
    texts = [rng.choice("aZ09-_. ßé株🏧") * rng.randrange(1, 20) for _ in range(4)]
    account, merchant, terminal, txn = (text.strip(" ") or "x" for text in texts)
    txn = f"{txn}{number}"
    pan = f"{rng.randrange(10**15, 10**16)}"
    has_account = rng.random() < 0.8
    country = rng.choice(sorted(COUNTRIES.values()))
    channel, result = rng.choice(("pos", "ecom", "atm", "recurring")), rng.choice(("approved", "declined"))
    raw = {
        "txn_id": txn,
        "ts": time.isoformat(),
        "pan": pan,
        "account": account if has_account else None,
        "merchant": merchant,
        "terminal": terminal,
        "mcc": "5411",
        "country": country,
        "amount": f"{amount:f}",
        "currency": currency,
        "channel": channel,
        "result": result,
    }
    event = {
        "event_id": ids.event_id("auth_json", txn),
        "event_time": time,
        "card_id": token(pan),
        "account_id": account if has_account else None,
        "merchant_id": merchant,
        "terminal_id": terminal,
        "mcc": "5411",
        "country": country,
        "amount": amount,
        "currency": currency,
        "channel": channel,
        "auth_result": result,
        "raw": {"source": "auth_json", "topic": "AUTH-JSON", "partition": 1, "offset": number, "timestamp": NOW},
    }
    optional: tuple[tuple[str, str, Any], ...] = (
        ("device", "device_id", f"d-{rng.randrange(9)}"),
        ("lat", "latitude", rng.uniform(-90, 90)),
        ("card_present", "card_present", rng.random() < 0.5),
        ("ip_country", "ip_country", country),
        ("stan", "trace_number", f"{rng.randrange(10**6):06d}"),
    )
    for source, name, value in optional:
        raw[source] = event[name] = value if rng.random() < 0.6 else None
    return raw, event


def test_spark_and_python_encode_equal_bytes(upstream_spark: SparkSession) -> None:
    rng = random.Random(11)
    pairs = [_made_up(number, rng) for number in range(EVENTS)]
    raws = [Raw(json.dumps(raw, ensure_ascii=False).encode(), offset=n) for n, (raw, _) in enumerate(pairs)]
    rows = written(upstream_spark, raws, rekeys=COPIES)
    assert [row.reason for row in rows if row.reason] == []
    codec = event_codec()
    expected = {event["event_id"]: event for _, event in pairs}
    for name, key in AUTH.keys.items():
        copies = [row for row in rows if row.topic == AUTH.events(TOPICS, name)]
        assert len(copies) == sum(event[key] is not None for event in expected.values())
        for row in copies:
            event = expected[_texts(row)["ce_id"]]
            assert bytes(row.value) == codec.encode(event), event
            assert bytes(row.key) == event[key].encode()
            assert row.partition == partition_of(event[key].encode(), 4)


def test_an_event_is_in_a_merged_topic_as_it_is_in_its_own_unless_it_lacks_the_key(
    upstream_spark: SparkSession,
) -> None:
    raws = [Raw(flat(account=None), offset=0), Raw(flat(), offset=1), Raw(flat(amount="x"), offset=2)]
    rows = written(upstream_spark, raws, rekeys=[], merges=("account", "card"))
    found = {(row.topic, row.raw.offset): row for row in rows}
    own, by_account, by_card = TOPICS.events("auth"), TOPICS.merged("account"), TOPICS.merged("card")
    assert sorted(found) == sorted([(own, 0), (own, 1), (by_account, 1), (by_card, 0), (by_card, 1), (DEAD, 2)])
    copy = found[by_account, 1]
    assert (copy.value, copy.headers) == (found[own, 1].value, found[own, 1].headers)
    assert (bytes(copy.key), copy.partition) == (b"a-1", partition_of(b"a-1", 4))
    assert (found[by_card, 0].key, found[by_card, 0].partition) == (found[own, 0].key, found[own, 0].partition)


def test_upstream_checks_each_topic_that_it_writes() -> None:
    written = {topic.name for topic in target("terminal", merges=("account",)).contracts()}
    assert {TOPICS.events("auth"), TOPICS.events("auth", "terminal"), TOPICS.merged("account"), DEAD} <= written


FAILED_BEFORE: tuple[tuple[str, bytes | None], ...] = (
    ("trace", b"\xff\x00"),
    ("__connect.errors.topic", b"AUTH-OLD"),
    ("first-failed-at", b"2026-01-01T00:00:00.000000Z"),
    ("attempt", b"2"),
    ("empty", None),
    ("raw-position", b"AUTH-OLD/0/1"),
    ("trace", b"twice"),
)
ORIGINALS: dict[str, tuple[tuple[str, bytes | None], ...] | None] = {
    "no headers": None,
    "some headers": (("traceparent", TRACE.encode()), ("x", b"")),
    "failed before": FAILED_BEFORE,
    "attempt is no number": (("attempt", b"many"), ("attempt", None)),
    "attempts": (("attempt", b"3"), ("attempt", b"7")),
}


BROKEN = flat(merchant=None, amount="1,5").replace(b"DE", b"\xc3\x9f")
NO_JSON: tuple[tuple[bytes | None, str], ...] = ((None, "tombstone"), (b"", "empty"), (b"\xff", "invalid-utf8"))
ACCOUNTS = {100: flat(account=None), 101: flat(), 102: flat(amount="x")}
TRACES: dict[int, tuple[tuple[str, bytes | None], ...] | None] = {
    200: None,
    201: (("traceparent", TRACE.encode()), ("other", b"x")),
    202: (("traceparent", b"4000001234567890"),),
    203: (("traceparent", None),),
}
CARDS = {300: flat(), 301: flat(pan=f"{PAN}x"), 302: flat(merchant=None)}


@pytest.fixture(scope="module")
def rows(upstream_spark: SparkSession) -> Mapping[int, list[Row]]:
    """What is written of all records of this module, by their offsets; one query, for to plan one takes a second."""
    raws = [
        Raw(BROKEN, key=b"\x00\xff", partition=6, offset=n, headers=original)
        for n, original in enumerate(ORIGINALS.values(), 17)
    ]
    raws += [Raw(value, key=None, offset=n) for n, (value, _) in enumerate(NO_JSON)]
    raws += [Raw(value, offset=n) for n, value in (ACCOUNTS | CARDS).items()]
    raws += [Raw(flat(), offset=n, headers=given) for n, given in TRACES.items()]
    found = defaultdict(list)
    for row in written(upstream_spark, raws, rekeys=["account"]):
        found[row.raw.offset].append(row)
    return found


def test_an_event_without_an_account_is_not_in_the_copy_by_account(rows: Mapping[int, list[Row]]) -> None:
    found = [row for offset in ACCOUNTS for row in rows[offset]]
    assert sorted((row.topic, bytes(row.key).decode(), row.raw.offset) for row in found) == [
        (TOPICS.events("auth", "account"), "a-1", 101),
        (TOPICS.events("auth"), token(PAN), 100),
        (TOPICS.events("auth"), token(PAN), 101),
        (DEAD, "card", 102),
    ]


@pytest.mark.parametrize("offset", TRACES)
def test_an_event_has_the_headers_of_a_cloud_event(offset: int, rows: Mapping[int, list[Row]]) -> None:
    assert len(rows[offset]) == 2
    for row in rows[offset]:
        expected = headers.cloud_event(
            id=event_codec().decode(bytes(row.value))["event_id"],
            source="/upstream/auth_json",
            type="lozenge.event.v1",
            subject=token(PAN),
            time=datetime(2026, 3, 1, 11, 59, 58, 500000, UTC),
            traceparent=TRACE if offset == 201 else headers.derived_traceparent("AUTH-JSON", 1, offset),
        )
        assert _pairs(row) == expected


@pytest.mark.parametrize("name", ORIGINALS)
def test_a_dead_letter_is_the_record_and_its_errors(name: str, rows: Mapping[int, list[Row]]) -> None:
    original, offset = ORIGINALS[name], 17 + [*ORIGINALS].index(name)
    [row] = rows[offset]
    assert (row.topic, row.partition, bytes(row.key), bytes(row.value)) == (DEAD, 2, b"\x00\xff", BROKEN)
    *pairs, raw_position = _pairs(row)
    assert raw_position == ("raw-position", f"AUTH-JSON/6/{offset}".encode())
    assert pairs == dead_letter_headers(
        [(name, text) for name, text in original or () if name != "raw-position"],
        topic="AUTH-JSON",
        partition=6,
        offset=offset,
        app="upstream",
        stage="normalise",
        error=DecodeError("missing:merchant_id, unknown:country, format:amount"),
        failed_at=NOW,
    )


@pytest.mark.parametrize("number", range(len(NO_JSON)))
def test_what_is_no_json_fails_at_the_stage_decode(number: int, rows: Mapping[int, list[Row]]) -> None:
    (value, reason), [row] = NO_JSON[number], rows[number]
    assert row.key is None
    assert row.value == value
    texts = _texts(row)
    assert (texts["__connect.errors.stage"], texts["__connect.errors.exception.message"]) == ("decode", reason)


def test_bytes_do_not_depend_on_the_batch(upstream_spark: SparkSession) -> None:
    raws = [
        Raw(flat(txn_id=f"t-{n}", amount=f"{n}.00" if n % 7 else "x", merchant=f"m-{n % 3}"), offset=n)
        for n in range(60)
    ]
    spread = written(upstream_spark, raws, slices=7)
    piecewise = [row for start in (0, 20) for row in written(upstream_spark, raws[start : start + 40 if start else 20])]
    assert len(spread) == 60 * 2 - 9
    assert sorted(spread, key=str) == sorted(piecewise, key=str)


def test_a_batch_is_ordered_by_arrival_then_event_time_then_raw_offset(upstream_spark: SparkSession) -> None:
    keys = [
        (arrived, happened, (part, offset))
        for arrived in (1, 2)
        for happened in (5, 6)
        for part in (0, 1)
        for offset in (7, 8)
    ]
    rows = [(partition, *key) for partition in (0, 1) for key in keys]
    schema = "partition int, arrived long, happened long, raw struct<partition: int, offset: long>"
    for seed in range(3):
        random.Random(seed).shuffle(rows)
        batch = upstream_spark.createDataFrame(rows, schema).repartition(3)
        ordered = [(r.partition, r.arrived, r.happened, tuple(r.raw)) for r in in_order(batch, 2).collect()]
        assert ordered == [(partition, *key) for partition in (0, 1) for key in keys]


def test_no_card_number_leaves_in_an_event_or_a_dead_letters_headers(rows: Mapping[int, list[Row]]) -> None:
    for row in (row for offset in CARDS for row in rows[offset]):
        seen = [bytes(header.value) for header in row.headers]
        if row.topic != DEAD:
            seen += [bytes(row.value), bytes(row.key)]
        assert PAN.encode() not in b"".join(seen)


@pytest.mark.parametrize("key", [b"k" * 16, b"k" * 64, b"k" * 65, bytes(range(200))])
def test_tokens_are_hmacs_for_every_length_of_key(key: bytes, upstream_spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    from lozenge_upstream.normalise.transforms import token as column

    (row,) = upstream_spark.range(1).select(column(F.lit(PAN), key, "card").alias("token")).collect()
    assert row.token == token(PAN, key)


def _pairs(row: Row) -> list[tuple[str, bytes | None]]:
    return [(h.key, None if h.value is None else bytes(h.value)) for h in row.headers]


def _texts(row: Row) -> dict[str, str]:
    return {name: value.decode() for name, value in _pairs(row) if value is not None}
