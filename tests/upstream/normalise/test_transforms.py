"""What a mapping can declare: real sources, each with a mapping that a person would write, and what becomes of them."""

import hmac
import json
import re
import tomllib
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from lozenge.contracts import ids
from lozenge_upstream.normalise import declarations as d
from lozenge_upstream.normalise import transforms
from lozenge_upstream.normalise.mapping_check import runnable
from lozenge_upstream.normalise.mapping_files import Mappings, mapping_of
from lozenge_upstream.normalise.transform_result import Row as Texts
from lozenge_upstream.stream_samples.tried_record import as_json
from tests.streams import AUTH
from tests.upstream.samples import KEY, NOW, Raw, least_mapping, normalised

PAN = "4000000000000002"
FOLDER = Path(__file__).with_name("mappings")
MAPPINGS = {file.stem: mapping_of(tomllib.loads(file.read_text("utf-8")), AUTH) for file in FOLDER.glob("*.toml")}
BASES: dict[str, dict[str, Any]] = {
    "tabformer": {
        "User": 0,
        "Card": 0,
        "Year": 2002,
        "Month": 9,
        "Day": 1,
        "Time": "06:20",
        "Amount": "$130.00",
        "Use Chip": "Swipe Transaction",
        "Merchant Name": -4282466774399730000,
        "Zip": 1754.0,
        "MCC": 742,
        "Errors?": "",
    },
    "sparkov": {
        "trans_date_trans_time": "2026-02-21 12:14:25",
        "cc_num": int(PAN),
        "merchant": "fraud_Example and Sons",
        "category": "personal_care",
        "amt": 2.5,
        "lat": 34.0,
        "long": -81.0,
        "merch_lat": 34.1,
        "merch_long": -81.3,
        "unix_time": 1771676065,
        "trans_num": "0f0f0f0f",
    },
    "basket": {
        "at": "2026-01-15T12:00:00",
        "card": {"number": PAN, "mode": "1"},
        "ids": [7, "x"],
        "kind": "SALE",
        "items": [{"sum": "12,50"}, {"seller name": "Bäcker"}],
        "till.no": [[1, "t-2"]],
        "shop": "s",
        "status": 200,
    },
    "sparse": {
        "at": "Thu, 15/01/2026 12:00:00",
        "card": "tok_1",
        "a": "Baker",
        "b": "xABCD",
        "sum": "1'250.50",
        "kind": "00D",
        "present": True,
        "country": 752,
    },
    "strict": {"day": "2026-01-15", "h": 7, "m": 5, "s": 9, "card": PAN, "sum": "1,250.50"},
    "java": {"at": "Thu Jan 15 12:00:00 CET 2026", "card": PAN, "sum": "1"},
    "fixed": {"at": "20260115 1730", "card": PAN, "sum": "1"},
}


def _text(name: str) -> str:
    return (FOLDER / f"{name}.toml").read_text("utf-8")


def at(*parts: int) -> dict[str, Any]:
    return {"time": datetime(*parts, tzinfo=UTC)}  # type: ignore[misc, arg-type]


def token_of(*parts: str) -> str:
    return "card_" + hmac.digest(KEY, "\x1f".join(parts).encode(), "sha256").hex()[:24]


def basket(**fields: Any) -> dict[str, Any]:
    return {"items": [fields, BASES["basket"]["items"][1]]}


def berlin(text: str) -> dict[str, Any]:
    return {"at": text}


CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any] | str]] = {
    # IBM TabFormer
    "a row of TabFormer": (
        "tabformer",
        {},
        at(2002, 9, 1, 10, 20)
        | {"card_id": token_of("0", "0"), "merchant_id": "-4282466774399730000", "terminal_id": "01754", "mcc": "0742"}
        | {"amount": Decimal(130), "channel": "pos", "auth_result": "approved"},
    ),
    "another card of the same user": ("tabformer", {"Card": 1}, {"card_id": token_of("0", "1")}),
    "a refund behind its currency sign": ("tabformer", {"Amount": "$-54.00"}, {"amount": Decimal(-54)}),
    "a refund before its currency sign": ("tabformer", {"Amount": "-$54.00"}, {"amount": Decimal(-54)}),
    "an amount without its currency sign": ("tabformer", {"Amount": "54.00"}, {"amount": Decimal(54)}),
    "two signs": ("tabformer", {"Amount": "-$-54.00"}, "format:amount"),
    "two currency signs": ("tabformer", {"Amount": "$$54.00"}, "format:amount"),
    "another currency sign": ("tabformer", {"Amount": "£54.00"}, "format:amount"),
    "a currency sign alone": ("tabformer", {"Amount": "$"}, "format:amount"),
    "no zip of an online payment": (
        "tabformer",
        {"Zip": None, "Use Chip": "Online Transaction"},
        {"terminal_id": "online"},
    ),
    "an error of a payment": ("tabformer", {"Errors?": "Insufficient Balance,"}, {"auth_result": "declined"}),
    "winter": ("tabformer", {"Month": 12, "Day": 31, "Time": "23:59"}, at(2003, 1, 1, 4, 59)),
    "a time of one digit": ("tabformer", {"Time": "6:20"}, at(2002, 9, 1, 10, 20)),
    "a time that became a number": ("tabformer", {"Time": 620}, at(2002, 9, 1, 10, 20)),
    "a time with seconds that became a number": ("tabformer", {"Time": 62001}, at(2002, 9, 1, 10, 20, 1)),
    "parts that are floats": ("tabformer", {"Year": 2002.0, "Month": 9.0, "Day": 1.0}, at(2002, 9, 1, 10, 20)),
    "no such day": ("tabformer", {"Month": 2, "Day": 30}, "format:event_time"),
    "a part is missing": ("tabformer", {"Day": None}, "missing:event_time"),
    "a part of the card is missing": ("tabformer", {"Card": None}, "missing:card_id"),
    # Sparkov
    "a row of Sparkov, with where it was paid": (
        "sparkov",
        {},
        at(2026, 2, 21, 12, 14, 25)
        | {"card_id": token_of(PAN), "mcc": "7298", "amount": Decimal("2.5"), "channel": "pos"}
        | {"latitude": 34.1, "longitude": -81.3, "terminal_id": "34.1/-81.3", "transaction_id": "0f0f0f0f"},
    ),
    "a payment of Sparkov over the net": ("sparkov", {"category": "misc_net"}, {"channel": "ecom", "mcc": "5999"}),
    "too many decimals": ("sparkov", {"amt": 2.555}, "decimals:amount"),
    # zones
    "winter time": ("basket", berlin("2026-01-15T12:00:00"), at(2026, 1, 15, 11)),
    "summer time": ("basket", berlin("2025-07-15 12:00:00.25"), at(2025, 7, 15, 10, 0, 0, 250000)),
    "its own offset counts": ("basket", berlin("2025-07-15T12:00:00Z"), at(2025, 7, 15, 12)),
    "before the clocks go forward": ("basket", berlin("2025-03-30T01:59:59"), at(2025, 3, 30, 0, 59, 59)),
    "after the clocks went forward": ("basket", berlin("2025-03-30T03:00:00"), at(2025, 3, 30, 1)),
    "an hour that the clocks jumped over": ("basket", berlin("2025-03-30T02:30:00"), "zone:event_time"),
    "the same with its offset": ("basket", berlin("2025-03-30T02:30:00+01:00"), at(2025, 3, 30, 1, 30)),
    "an hour that came twice is the first": ("basket", berlin("2025-10-26T02:30"), at(2025, 10, 26, 0, 30)),
    "the hour after it": ("basket", berlin("2025-10-26T03:00:00"), at(2025, 10, 26, 2)),
    "an hour that came twice is the second": ("sparse", berlin("Sun, 26/10/2025 02:30:00"), at(2025, 10, 26, 1, 30)),
    "that hour is not known": ("strict", {"day": "2025-11-02", "h": 1}, "zone:event_time"),
    "the hour before it": ("strict", {"day": "2025-11-02", "h": 0}, at(2025, 11, 2, 4, 5, 9)),
    "a zone and a future": ("basket", berlin("2026-03-01T14:00:00"), "future:event_time"),
    "a form of its own": ("sparse", {}, at(2026, 1, 15, 11)),
    "a form of its own, without a day of the week": ("sparse", berlin("15/01/2026 12:00:00"), at(2026, 1, 15, 11)),
    "months and days are not changed": ("sparse", berlin("Thu, 01/15/2026 12:00:00"), "format:event_time"),
    "Java's Date": ("java", {}, at(2026, 1, 15, 11)),
    "Java's Date in summer": ("java", berlin("Tue Jul 15 12:00:00 CEST 2025"), at(2025, 7, 15, 10)),
    "Java's Date in UTC": ("java", berlin("Thu Jan 15 12:00:00 UTC 2026"), at(2026, 1, 15, 12)),
    "a form with an offset of the mapping's": ("fixed", {}, at(2026, 1, 15, 12)),
    "a date and three numbers": ("strict", {}, at(2026, 1, 15, 12, 5, 9)),
    "a basic date and seconds with a fraction": (
        "strict",
        {"day": 20260115, "s": "9.5"},
        at(2026, 1, 15, 12, 5, 9, 500000),
    ),
    # lists and objects
    "elements of lists": (
        "basket",
        {},
        {"merchant_id": "Bäcker", "terminal_id": "t-2", "account_id": "7-x", "country": "DE", "currency": "EUR"},
    ),
    "a list is too short": ("basket", {"items": BASES["basket"]["items"][:1]}, "missing:merchant_id"),
    "an optional element": ("basket", {"ids": [7]}, {"account_id": "7-"}),
    "no list": ("basket", {"ids": None}, {"account_id": None}),
    "an object where a list belongs": ("basket", {"ids": {"0": 7}}, "type:ids"),
    "a text where a list belongs": ("basket", {"ids": "7"}, "type:ids"),
    "a list where an object belongs": ("basket", {"card": [PAN]}, "type:card"),
    "a number where an object belongs": ("basket", {"card": 5, "ids": 5}, "type:card, type:ids"),
    "another type within a list": ("basket", {"items": [5]}, "type:items"),
    "an element that is an object": ("basket", {"till.no": [[1, {"a": 1}]]}, "type:terminal_id"),
    # amounts
    "decimal comma": ("basket", {}, {"amount": Decimal("12.5")}),
    "thousands": ("basket", basket(sum="1.234.567,89 €"), {"amount": Decimal("1234567.89")}),
    "thousands alone": ("basket", basket(sum="EUR 1.250"), {"amount": Decimal(1250)}),
    "a point is no decimal mark": ("basket", basket(sum="12.50"), "format:amount"),
    "groups that are none": ("basket", basket(sum="1.23.45,00"), "format:amount"),
    "parentheses": ("basket", basket(sum="(54,00)"), {"amount": Decimal(-54)}),
    "parentheses and a currency": ("basket", basket(sum="(54,00 €)"), {"amount": Decimal(-54)}),
    "minus at the end": ("basket", basket(sum="54,00-"), {"amount": Decimal(-54)}),
    "a number that is negative twice": ("basket", basket(sum="(-54,00)"), "format:amount"),
    "all digits of a number": ("strict", {"sum": "12,345,678,901,234.56"}, {"amount": Decimal("12345678901234.56")}),
    "a comma as a decimal mark where it separates thousands": ("strict", {"sum": "12,50"}, "format:amount"),
    "apostrophes": ("sparse", {}, {"amount": Decimal("1250.5")}),
    "the sign from the middle of a field": ("sparse", {"kind": "00C"}, {"amount": Decimal("-1250.5")}),
    "neither sign": ("sparse", {"kind": "00X"}, "kind:kind"),
    # words
    "by two conditions": ("basket", {"kind": "CASH"}, {"channel": "atm"}),
    "one of two conditions": ("basket", {"kind": "CASH", "card": {"number": PAN, "mode": "x"}}, {"channel": "pos"}),
    "by an absent field": ("basket", {"shop": None}, {"channel": "ecom"}),
    "by a field that is there": ("basket", {"error": "E5"}, {"auth_result": "declined"}),
    "by none": ("basket", {"status": 500}, "unknown:auth_result"),
    "by no field": ("basket", {"status": None}, "missing:auth_result"),
    "true": ("sparse", {"present": True}, {"channel": "pos"}),
    "false": ("sparse", {"present": False}, {"channel": "ecom"}),
    "blank means a country": ("sparse", {"country": " "}, {"country": "SE"}),
    "another country": ("sparse", {"country": "999"}, "unknown:country"),
    "blank means a category": ("sparse", {}, {"mcc": "5999"}),
    "Kosovo in the alpha-3 code": ("basket", {"country": "XKX"}, {"country": "XK"}),
    # texts
    "joined, with a word and a part": ("sparse", {}, {"merchant_id": "Baker of ABC"}),
    "a part of a joined text is missing": ("sparse", {"a": ""}, "missing:merchant_id"),
    "a token is copied": ("sparse", {}, {"card_id": "tok_1"}),
    "a card number is no such token": ("sparse", {"card": PAN}, "format:card_id"),
    "a card number is masked": (
        "basket",
        {"items": [{"sum": "1"}, {"seller name": f"REFUND {PAN} and 4000-0000-0000-0002!"}]},
        {"merchant_id": "REFUND 400000******0002 and 4000-00**-****-0002!"},
    ),
    "digits that are no card number stay": (
        "basket",
        {"items": [{"sum": "1"}, {"seller name": "4000000000000003"}]},
        {"merchant_id": "4000000000000003"},
    ),
    "a card number that is kept": ("sparse", {"till": PAN}, {"terminal_id": PAN}),
    "a card number in a joined text": ("sparse", {"a": PAN}, "pan:merchant_id"),
    # skipped
    "skipped by its value": ("basket", {"card": {"number": PAN, "mode": "DEMO"}}, "skip:basket/test_card"),
    "skipped by two conditions": ("basket", {"items": [], "kind": "PING"}, "skip:basket/probe"),
    "one of two conditions skips nothing": ("basket", {"items": []}, "missing:merchant_id, missing:amount"),
}

Outcomes = dict[str, Row]


@pytest.fixture(scope="module")
def outcomes(upstream_spark: SparkSession) -> Outcomes:
    """Those of each mapping together: each is a plan of its own."""
    found: Outcomes = {}
    for name, mapping in MAPPINGS.items():
        cases = {case: BASES[name] | change for case, (of, change, _) in CASES.items() if of == name}
        raws = [Raw(json.dumps(record, ensure_ascii=False).encode()) for record in cases.values()]
        found |= dict(zip(cases, normalised(upstream_spark, raws, mapping), strict=True))
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_record_becomes_what_its_mapping_says(name: str, outcomes: Outcomes) -> None:
    row, wanted = outcomes[name], CASES[name][2]
    if isinstance(wanted, str):
        assert row.reason == wanted
        return
    assert row.reason is None
    made = row.asDict() | {"time": datetime.fromtimestamp(row.event_micros / 1e6, UTC)}
    assert {field: made[field] for field in wanted} == wanted


def test_every_mapping_here_passes_the_check(upstream_spark: SparkSession) -> None:
    assert runnable(upstream_spark, Mappings(list(MAPPINGS.values()), [])).refused == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("America/New_York", "America/New_Amsterdam", "no zone of the IANA database"),
        ('path = "at", format = "EEE MMM dd', 'path = "at", format = "qq bad', "no form of a time"),
        ('path = "at", format = "EEE MMM dd', 'path = "at", format = "MMM EEE dd', "no form of a time"),
    ],
)
def test_the_check_knows_what_will_not_run(old: str, new: str, problem: str, upstream_spark: SparkSession) -> None:
    [text] = [text for name in ("strict", "java") if old in (text := _text(name))]
    mapping = mapping_of(tomllib.loads(text.replace(old, new)), AUTH)
    [refused] = runnable(upstream_spark, Mappings([mapping], [])).refused
    assert problem in refused.problems[0]
    assert "event_time" in refused.problems[0]


def test_a_condition_with_a_pattern_that_java_refuses_refuses_its_mapping(upstream_spark: SparkSession) -> None:
    mapping = mapping_of(tomllib.loads(_text("basket").replace("[0-9]+", "(?P<x>a)")), AUTH)
    [refused] = runnable(upstream_spark, Mappings([mapping], [])).refused
    assert "pattern: '(?P<x>a)' is no regular expression of Java's" in refused.problems[0]


def test_a_reversal_names_the_event_of_its_payment(upstream_spark: SparkSession) -> None:
    """The original data elements (DE90 of 1987, DE56 of 1993) have the kind and the trace number of the payment."""

    def identity(kind: str, path: str) -> dict[str, Any]:
        parts = [{"path": path, "length": 2}, {"path": "de37"}, {"path": path, "start": 5, "length": 6}]
        parts += [{"path": each, "optional": True} for each in ("de32", "de41")]
        return {"when": [{"path": "mti", "length": 2, "values": [kind]}], "parts": parts}

    spec = d.Reference.model_validate(
        {"transform": "reference", "of": [identity("04", "de90"), identity("14", "de56")]}
    )
    assert spec.required == ("de37",), "what only one identity needs is needed only there"
    records = [
        ("0420", "0100" + "000001" + "0301115958" + "0" * 22, None, "t-1", None, "x-1"),
        ("1420", None, "1100" + "000001" + "260301115958" + "06123456", "t-1", None, "x-1"),
        ("0100", None, None, "t-1", None, "x-1"),
        ("0420", None, None, "t-1", None, "x-1"),
    ]
    columns = ("mti", "de90", "de56", "de37", "de32", "de41")
    frame = upstream_spark.createDataFrame(records, ", ".join(f"{name} string" for name in columns))
    texts = Texts(F.col, F.lit(NOW), KEY, "auth_iso8583")
    made = transforms.make(spec, texts)
    assert made.absent is not None
    found = frame.select(made.value.alias("id"), made.absent.alias("absent"), made.fault.alias("fault")).collect()
    originals = [ids.event_id("auth_iso8583", f"{kind}\x1ft-1\x1f000001\x1f\x1fx-1") for kind in ("01", "11")]
    assert [(row.id, row.absent) for row in found] == [
        *((each, False) for each in originals),
        (None, True),
        (None, False),
    ]


PAGE = (Path(__file__).parents[3] / "docs" / "mappings.md").read_text("utf-8")
EXAMPLE = re.compile(r"```toml example\n(?P<field>\w+) = (?P<spec>.*?)\n```\n(?P<text>.*?)\n\n", re.DOTALL)
OUTCOME = re.compile(r"`(?P<record>\{[^`]*\})` (?:becomes\s`(?P<value>[^`]+)`|is refused: `(?P<reason>[^`]+)`)")
[DECLARED] = re.findall(r"```json schema\n(.*?)```", PAGE, re.DOTALL)
NESTED = [field | {"default": None} for field in json.loads(DECLARED)]
STREAM = AUTH.model_copy(update={"avro": AUTH.avro | {"fields": [*AUTH.avro["fields"], *NESTED]}})
"""Authorisations with the fields that the page declares in addition."""


def examples() -> list[tuple[str, dict[str, Any], str, str | None, str | None]]:
    """Of each example of the page: field, transform, and a record with what becomes of that field."""
    return [
        (shown["field"], tomllib.loads(f"it = {shown['spec']}")["it"], found["record"], found["value"], found["reason"])
        for shown in EXAMPLE.finditer(PAGE)
        for found in OUTCOME.finditer(shown["text"])
    ]


def test_the_page_of_the_language_says_what_its_examples_make(upstream_spark: SparkSession) -> None:
    wanted = examples()
    assert len(wanted) == len(OUTCOME.findall(PAGE)) > 15
    # examples of different fields share a mapping: each is a plan of its own
    rounds: list[dict[str, Any]] = []
    for field, spec, *_ in wanted:
        if not any(made.get(field) == spec for made in rounds):
            free = next((made for made in rounds if field not in made), None)
            if free is None:
                rounds.append(free := {})
            free[field] = spec
    for made in rounds:
        mapping = least_mapping("page", STREAM, **_on_paths_of_its_own(made))
        asked = [each for each in wanted if made.get(each[0]) == each[1]]
        raws = [Raw(_moved(json.loads(record), field)) for field, _, record, _, _ in asked]
        for row, (field, _, record, value, reason) in zip(
            normalised(upstream_spark, raws, mapping), asked, strict=True
        ):
            if reason is not None:
                assert reason.split(":")[0] + ":" in (row.reason or ""), (field, record, row.reason)
                assert reason in row.reason.replace(f"{field}_own.", ""), (field, record, row.reason)
            else:
                assert _shown(row, field) == value, (field, record, row.reason)


def _on_paths_of_its_own(made: dict[str, Any]) -> dict[str, Any]:
    """The transforms with all raw fields in an object of the field's name: two examples may name one raw field."""

    def moved(value: Any, field: str, key: str = "") -> Any:
        if isinstance(value, dict):
            inner = {"of": value["of"]} if value.get("transform") in ("list", "map") else {}
            return {name: moved(each, field, name) for name, each in value.items()} | inner
        if isinstance(value, list):
            return [moved(each, field, key) for each in value]
        return f"{field}_own.{value}" if key in ("path", "date", "time") else value

    return {field: moved(spec, field) for field, spec in made.items()}


def _moved(record: dict[str, Any], field: str) -> bytes:
    return json.dumps({f"{field}_own": record}).encode()


def _shown(row: Row, field: str) -> str:
    if field == "event_time":
        return datetime.fromtimestamp(row.event_micros / 1e6, UTC).isoformat()
    shown = as_json(_plain(row[field]))
    return shown if isinstance(shown, str) else json.dumps(shown)


def _plain(value: Any) -> Any:
    if isinstance(value, Row):
        return {name: _plain(part) for name, part in value.asDict().items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value
