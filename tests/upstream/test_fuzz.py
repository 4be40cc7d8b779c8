"""Every raw record becomes one event that keeps the contract, or one dead letter with a reason.

`FUZZ_RECORDS` are made up, in batches, from `FUZZ_SEED`: a few thousand here, a hundred thousand by `make fuzz`.
"""

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import ceil
from random import Random
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from lozenge.contracts import ids
from lozenge.contracts.money import MINOR_DIGITS
from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.topics import Topics
from lozenge.errors import DecodeError
from lozenge_upstream.normalise.countries import ALPHA2
from lozenge_upstream.normalise.mapping import Mapping
from lozenge_upstream.normalise.normaliser import DECODE_KINDS, KINDS, skips
from tests.streams import AUTH, event_codec
from tests.upstream.fuzzing import odd_values, records
from tests.upstream.samples import COPIES, ISO, JSON, PARTITIONS, Raw, target, written

TOPICS = Topics()

RECORDS = int(os.environ.get("FUZZ_RECORDS", "2000"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
BATCH = min(5_000, RECORDS // 2)
EVENT = event_codec()
DEAD = TOPICS.dead_letters("upstream")
PROBLEM = re.compile(rf"({'|'.join(KINDS)})(:[a-z0-9_.]+)?")
FREE_TEXT = {"account_id": ("account", None), "merchant_id": ("merchant", "de42"), "terminal_id": ("terminal", "de41")}


class Fraction(str):
    """A JSON number with a point or an exponent, which becomes a double where a text is wanted."""


Outcome = list[tuple[Any, ...]]


@pytest.mark.parametrize("source", [JSON, ISO], ids=lambda source: source.source)
def test_every_raw_record_becomes_an_event_or_a_dead_letter(source: Mapping, upstream_spark: SparkSession) -> None:
    seen: Counter[str] = Counter()
    wrong: list[str] = []
    for number in range(ceil(RECORDS / 2 / BATCH)):
        raws = records(source, odd_values(SEED + number), Random(f"{SEED}/{number}"), BATCH)
        outcomes = _outcomes(upstream_spark, source, raws)
        for raw in raws:
            try:
                seen[_class_of(source, raw, outcomes[raw.offset])] += 1
            except (AssertionError, DecodeError, ValueError, TypeError) as error:
                wrong.append(f"{type(error).__name__}: {error}: {raw} became {outcomes[raw.offset]}")
    total = seen.total() + len(wrong)
    print(f"seed {SEED}, {source.source}: {total} records, {dict(seen)}")
    assert not wrong, f"seed {SEED}: {len(wrong)} of {total} records\n" + "\n".join(wrong[:5])
    assert total >= RECORDS // 2
    assert seen.keys() == {"event", "problems", *DECODE_KINDS, *(["skipped"] if source.skip else [])}


def _outcomes(spark: SparkSession, source: Mapping, raws: Sequence[Raw]) -> dict[int, Outcome]:
    """What is written of each record, by its offset, in two runs; if Spark dies of a record, raises with that one."""
    try:
        rows = written(spark, [*raws, *reversed(raws)], source, 2, COPIES)
    except Exception as error:
        if len(raws) == 1:
            raise AssertionError(f"seed {SEED}: the job dies of {raws[0]}") from error
        half = len(raws) // 2
        return _outcomes(spark, source, raws[:half]) | _outcomes(spark, source, raws[half:])
    outcomes: dict[int, Outcome] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.topic or ""):
        outcomes[row.raw.offset].append(_plain(row))
    return outcomes


def _plain(row: Row) -> tuple[Any, ...]:
    headers = tuple((header.key, _bytes(header.value)) for header in row.headers)
    return row.topic, row.partition, _bytes(row.key), _bytes(row.value), row.reason, row.arrived, row.happened, headers


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def _class_of(source: Mapping, raw: Raw, outcome: Outcome) -> str:
    """What the record came to, each time, if that is as it should be."""
    assert outcome, "it is lost"
    assert outcome[::2] == outcome[1::2], "it comes to something else the second time"
    outcome = outcome[::2]
    topic, partition, key, value, reason, _, happened, headers = outcome[0]
    if topic is None:
        assert len(outcome) == 1, "it is also written"
        assert reason in skips(source)
        return "skipped"
    if topic == DEAD:
        assert len(outcome) == 1, "it is in several topics"
        assert (key, value, partition) == (raw.key, raw.value, raw.partition % PARTITIONS[DEAD])
        texts = dict(headers)
        assert texts["__connect.errors.exception.message"] == reason.encode()
        assert reason, "the reason is empty"
        assert all(PROBLEM.fullmatch(problem) for problem in reason.split(", ")), reason
        assert reason in ("invalid-utf8", "framed") or _is_utf8(raw.value), "it is no UTF-8"
        return reason if reason in DECODE_KINDS else "problems"
    event = EVENT.decode(value)
    assert EVENT.encode(event) == value, "Python would write other bytes"
    keys = target(*COPIES).keys
    wanted = sorted(topic for topic, field in keys.items() if event[field] is not None)
    assert [row[0] for row in outcome] == wanted, "it is not in the topics where it should be"
    for topic, partition, key, copied, *_ in outcome:
        assert (copied, key) == (value, event[keys[topic]].encode())
        assert partition == partition_of(key, PARTITIONS[topic])
    assert happened == (event["event_time"] - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    _sound(source, raw, event)
    _faithful(source, raw, event)
    return "event"


def _is_utf8(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def _sound(source: Mapping, raw: Raw, event: dict[str, Any]) -> None:
    """What holds of every event."""
    digits = MINOR_DIGITS[event["currency"]]
    assert event["amount"] == round(event["amount"], digits), "more decimals than the currency has"
    assert datetime(1980, 1, 1, tzinfo=UTC) <= event["event_time"]
    assert event["event_time"] - raw.timestamp <= AUTH.future_cap, "it lies in the future"
    assert re.fullmatch(r"card_[0-9a-f]{24}", event["card_id"])
    assert re.fullmatch(r"[0-9]{4}", event["mcc"])
    assert event["country"] in ALPHA2
    assert event["channel"] in ("pos", "ecom", "atm", "recurring", "other")
    assert event["auth_result"] in ("approved", "declined")
    texts = [event[name] for name in FREE_TEXT if event[name] is not None]
    assert all(0 < len(text) <= 128 and text.strip(" ") == text and "\x00" not in text for text in texts)
    position = {"topic": source.topic, "partition": raw.partition, "offset": raw.offset, "timestamp": raw.timestamp}
    assert event["raw"] == {"source": source.source} | position


def _faithful(source: Mapping, raw: Raw, event: dict[str, Any]) -> None:
    """The event says what another reader of JSON finds in the record."""
    assert raw.value is not None
    fields = json.loads(raw.value.decode("utf-8-sig"), parse_float=Fraction, parse_int=str)
    kind = 0 if source is JSON else 1
    for name, paths in FREE_TEXT.items():
        if (path := paths[kind]) is not None:
            found = fields.get(path)
            same = float(event[name]) == float(found) if isinstance(found, Fraction) else event[name] == _text(found)
            assert same, name
    transaction = fields.get(("txn_id", "de37")[kind])
    own = _text(transaction)
    if own is not None and kind:
        own = "\x1f".join(
            (_kind(fields)[:2], own, *(_text(fields.get(name)) or "" for name in ("de11", "de32", "de41")))
        )
    own = own or f"{source.topic}/{raw.partition}/{raw.offset}"
    as_written = event["event_id"] == ids.event_id(source.source, own)
    inexact = any(isinstance(fields.get(name), Fraction) for name in ("txn_id", "de37", "de11", "de32", "de41"))
    assert as_written or inexact, "its id is made of something else"
    if source is JSON:
        assert event["amount"] == Decimal(fields["amount"].strip(" "))
    else:
        sign = -1 if _kind(fields)[1] == "4" else 1
        assert event["amount"] == sign * Decimal(fields["de4"].strip(" ")).scaleb(-MINOR_DIGITS[event["currency"]])


def _kind(fields: dict[str, Any]) -> str:
    """The message type indicator, with the leading zero that a number has lost."""
    mti: str = fields["mti"].strip(" ")
    return mti.removesuffix(".0").zfill(4) if re.fullmatch(r"[0-9]{1,4}(\.0)?", mti) else mti


def _text(value: Any) -> str | None:
    assert value is None or isinstance(value, str), f"{value!r} is no text"
    return (value or "").strip(" ") or None
