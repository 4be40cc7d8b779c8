"""Amounts, tokens, codes, words and times within records, lists and maps are what they are as fields of an event."""

import hmac
import json
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lozenge.streams.definition import StreamDefinition
from lozenge.toml_places import spelled
from lozenge_upstream.normalise.mapping import Mapping, problems
from lozenge_upstream.normalise.mapping_check import runnable
from lozenge_upstream.normalise.mapping_files import Mappings, mapping_of
from lozenge_upstream.stream_samples.tried_record import TriedRecord, try_records
from tests.upstream.samples import KEY, NOW

CARD, OTHER_CARD = "4000001234567890", "4000000000000002"
AT = int(NOW.timestamp() * 1000)
AMOUNT = {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 4}


def optional(name: str, kind: Any, **hints: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None, **hints}


def record_of(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def stream(*fields: dict[str, Any], tokens: dict[str, str]) -> StreamDefinition:
    avro = {"namespace": "shop", **record_of("Bill", {"name": "shop", "type": "string"}, *fields)}
    return StreamDefinition(name="bills", title="Bills", owner="shop", keys={"shop": "shop"}, tokens=tokens, avro=avro)


def mapping(to: StreamDefinition, **fields: Any) -> Mapping:
    own = {
        "event_time": {"transform": "timestamp_epoch", "path": "at", "unit": "ms"},
        "shop": {"transform": "text", "path": "shop"},
    }
    return mapping_of({"source": "till", "topic": "TILL", "keyed_by": "", "fields": own | fields}, to)


def tried(spark: SparkSession, by: Mapping, *records: dict[str, Any]) -> list[TriedRecord]:
    assert list(problems(by)) == []
    assert runnable(spark, Mappings([by], [])).refused == []
    full = [json.dumps({"at": AT, "shop": "s"} | record).encode() for record in records]
    return try_records(spark, by, [(text, NOW) for text in full], KEY)


def token(word: str, text: str) -> str:
    return f"{word}_{hmac.new(KEY, text.encode(), 'sha256').hexdigest()[:24]}"


PARTS = (
    optional("amount", AMOUNT),
    optional("currency", "string", codes="currency"),
    optional("fee", AMOUNT),
    optional("fee_currency", "string", codes="currency"),
    optional("card", "string"),
    optional("mail", "string"),
    optional("country", "string", codes="country"),
    optional("seen", {"type": "long", "logicalType": "timestamp-micros"}),
    optional("word", "string", values=["a", "b"]),
    optional("truth", "boolean"),
    optional("text", "string", pattern="[a-z 0-9]+"),
    optional("original", "string"),
)
TOKENS = {"card": "card", "mail": "mail"}
EVERYWHERE = stream(
    *PARTS,
    optional("one", record_of("One", *PARTS)),
    {"name": "many", "type": {"type": "array", "items": record_of("Many", *PARTS)}},
    optional("named", {"type": "map", "values": record_of("Named", *PARTS)}),
    tokens={f"{place}{name}": word for name, word in TOKENS.items() for place in ("", "one.", "many.", "named.")},
)


def made(above: str = "") -> dict[str, Any]:
    """The transform of each part, whose raw fields are in the object `above`."""
    return {
        "amount": {"transform": "decimal", "path": f"{above}sum", "symbols": ["$"]},
        "currency": {"transform": "currency", "path": f"{above}cur", "code": "alpha"},
        "fee": {"transform": "minor_units", "path": f"{above}fee", "currency": "fee_currency"},
        "fee_currency": {"transform": "currency", "path": f"{above}feecur", "code": "numeric"},
        "card": {"transform": "token", "path": f"{above}pan"},
        "mail": {"transform": "token", "path": f"{above}mail", "pattern": "[^@]+@.+", "lower": True},
        "country": {"transform": "country", "path": f"{above}land", "code": "alpha3"},
        "seen": {"transform": "timestamp_iso", "path": f"{above}seen", "zone": "Europe/Berlin"},
        "word": {"transform": "lookup", "path": f"{above}word", "table": {"A": "a", "B": "b"}},
        "truth": {
            "transform": "first",
            "optional": True,
            "of": [{"path": f"{above}yes", "table": {"y": "true", "n": "false"}}],
        },
        "text": {"transform": "text", "path": f"{above}text"},
        "original": {
            "transform": "reference",
            "of": [{"parts": [{"path": f"{above}of"}], "when": [{"path": f"{above}word", "values": ["B"]}]}],
        },
    }


def record(**fields: Any) -> dict[str, Any]:
    return {"transform": "record", "fields": fields}


MADE_EVERYWHERE = mapping(
    EVERYWHERE,
    **made(),
    one=record(**made("one.")),
    many={"transform": "list", "path": "many", "of": record(**made())},
    named={"transform": "map", "path": "named", "of": record(**made())},
)
GOOD = {
    "sum": "$12.50", "cur": "EUR", "fee": 5, "feecur": "392", "pan": CARD, "mail": "Ann@x.org", "land": "GBR",
    "seen": "2026-03-01 12:00", "word": "B", "yes": "n", "text": "free text", "of": "t-1",
}  # fmt: skip
RAW: dict[str, tuple[dict[str, Any], str]] = {
    "everything": (GOOD, ""),
    "an amount without a currency": ({"sum": 1}, "missing:currency"),
    "a currency without an amount": ({"cur": "EUR", "feecur": "978"}, ""),
    "a currency that there is not": ({"sum": 1, "cur": "XYZ"}, "unknown:currency"),
    "more decimals than the currency has": ({"sum": "1.5", "cur": "JPY"}, "decimals:amount"),
    "no number": ({"sum": "x", "fee": "1.5", "cur": "EUR", "feecur": "978"}, "format:amount, format:fee"),
    "another type": ({"sum": True, "cur": "EUR", "pan": False}, "type:amount, type:card"),
    "no card": ({"pan": "17", "mail": "ann"}, "format:card, format:mail"),
    "a country and a word that there are not": ({"land": "GB", "word": "C"}, "unknown:country, unknown:word"),
    "an hour that the zone does not have": ({"seen": "2025-03-29 02:30"}, ""),
    "the hour that it lacks": ({"seen": "2025-03-30 02:30"}, "zone:seen"),
    "a time of next year": ({"seen": "2027-03-02 12:00"}, ""),
    "a time of long ago": ({"seen": "1931-03-02 12:00"}, ""),
    "a card number in a text": ({"text": f"to {OTHER_CARD}"}, "pan:text"),
    "a text of another form": ({"text": "ÄÖ"}, "format:text"),
}


def at(place: str, reasons: str) -> list[str]:
    return [each.replace(":", f":{place}") for each in reasons.split(", ") if each]


def test_a_part_is_made_and_refused_as_a_field_of_the_event_is(upstream_spark: SparkSession) -> None:
    """One record for each place: the event itself, a record, an element of a list and one of a map."""
    for_place = {
        "": [raw | {"many": []} for raw, _ in RAW.values()],
        "one.": [{"one": raw, "many": []} for raw, _ in RAW.values()],
        "many.": [{"many": [raw, {"text": "b"}]} for raw, _ in RAW.values()],
        "named.": [{"many": [], "named": {"x": raw}} for raw, _ in RAW.values()],
    }
    records = [each for of in for_place.values() for each in of]
    answers = iter(tried(upstream_spark, MADE_EVERYWHERE, *records))
    found = {place: dict(zip(RAW, answers, strict=False)) for place in for_place}
    for place, of in found.items():
        reasons = {name: sorted(each.problems) for name, each in of.items()}
        assert reasons == {name: sorted(at(place, expected)) for name, (_, expected) in RAW.items()}
    names = [field["name"] for field in PARTS]
    for name, (_, reasons_) in RAW.items():
        if not reasons_:
            whole, one, many, named = (found[place][name].event for place in for_place)
            assert whole is not None and one is not None and many is not None and named is not None  # noqa: PT018
            expected = {part: whole.get(part) for part in names}
            assert (one["one"], many["many"][0], named["named"]["x"]) == (expected, expected, expected)
    event = found["one."]["everything"].event
    assert event is not None
    assert event["one"] | {"seen": None, "original": None} == {
        "amount": Decimal("12.5000"), "currency": "EUR", "fee": Decimal("5.0000"), "fee_currency": "JPY",
        "card": token("card", CARD), "mail": token("mail", "ann@x.org"), "country": "GB", "seen": None, "word": "b",
        "truth": False, "text": "free text", "original": None,
    }  # fmt: skip
    assert event["one"]["original"] is not None


LINE = record_of("Line", {"name": "price", "type": AMOUNT}, optional("tip", AMOUNT))
OUTER = stream(
    optional("currency", "string", codes="currency"),
    {"name": "lines", "type": {"type": "array", "items": LINE}},
    optional("fees", {"type": "map", "values": AMOUNT}),
    tokens={},
)
SIGN = {"path": "type", "plus": ["S"], "minus": ["R"]}
LINES = record(
    price={"transform": "decimal", "path": "sum", "sign": SIGN}, tip={"transform": "minor_units", "path": "tip"}
)
MADE_OUTER = mapping(
    OUTER,
    currency={"transform": "currency", "path": "cur", "code": "alpha"},
    lines={"transform": "list", "path": "lines", "of": LINES},
    fees={"transform": "map", "path": "fees", "of": {"transform": "minor_units", "path": "."}},
)


def test_amounts_of_a_list_and_of_a_map_may_have_the_currency_of_the_event(upstream_spark: SparkSession) -> None:
    sale, refund = {"sum": "2.5", "type": "S"}, {"sum": 1, "type": "R", "tip": 50}
    cases: list[tuple[dict[str, Any], tuple[str, ...]]] = [
        ({"cur": "EUR", "lines": [sale, refund], "fees": {"card": 30}}, ()),
        ({"lines": []}, ()),
        ({"lines": [sale]}, ("missing:currency",)),
        ({"lines": [], "fees": {"card": 30}}, ("missing:currency",)),
        ({"cur": "XYZ", "lines": [sale]}, ("unknown:currency",)),
        ({"cur": "JPY", "lines": [refund, sale]}, ("decimals:lines.price",)),
        ({"cur": "EUR", "lines": [sale | {"type": "T"}]}, ("kind:lines.price",)),
        ({"cur": "EUR", "lines": [sale | {"type": None}]}, ("missing:lines.price",)),
        ({"cur": "EUR", "lines": [], "fees": {"card": "x"}}, ("format:fees",)),
    ]  # fmt: skip
    found = tried(upstream_spark, MADE_OUTER, *(raw for raw, _ in cases))
    assert [each.problems for each in found] == [problems_ for _, problems_ in cases]
    event = found[0].event
    assert event is not None
    assert event["lines"] == [{"price": Decimal("2.5"), "tip": None}, {"price": Decimal(-1), "tip": Decimal("0.5")}]
    assert event["fees"] == {"card": Decimal("0.3")}


WORD = {"transform": "text", "path": "pan"}
NUMBER = {"transform": "decimal", "path": "sum"}


HIDDEN = {"transform": "token", "path": "pan"}
COPIED = "would copy the card number pan; only a token may"
NO_CURRENCY = "amount: an amount has a currency"


def of_list(**fields: Any) -> dict[str, Any]:
    return {"transform": "list", "path": "m", "of": record(**fields)}


@pytest.mark.parametrize(
    ("to", "fields", "expected"),
    [
        (EVERYWHERE, {"one": record(card=WORD)}, "fields.one.fields.card: text does not make it; token does"),
        (EVERYWHERE, {"one": record(text=HIDDEN)}, "fields.one.fields.text: token does not make it; text"),
        (EVERYWHERE, {"one": record(card=HIDDEN, text=WORD)}, f"one.text {COPIED}"),
        (EVERYWHERE, {"one": record(card=HIDDEN), "text": WORD}, f"text {COPIED}"),
        (EVERYWHERE, {"card": HIDDEN, "one": record(text=WORD)}, f"one.text {COPIED}"),
        (EVERYWHERE, {"many": of_list(card=HIDDEN, text=WORD)}, "many.text would copy the card number m[].pan"),
        (EVERYWHERE, {"one": record(amount=NUMBER)}, f"fields.one.fields.{NO_CURRENCY}"),
        (EVERYWHERE, {"one": record(amount=NUMBER | {"currency": "coin"})}, f"fields.one.fields.{NO_CURRENCY}"),
        (OUTER, {"lines": of_list(price=NUMBER)}, "fields.lines.of.fields.price: an amount has a currency"),
        (
            EVERYWHERE,
            {"one": record(word={"transform": "constant", "value": "c"})},
            "fields.one.fields.word: c is none of its values",
        ),
    ],
)
def test_what_a_part_cannot_be_is_named_as_of_a_field_of_the_event(
    to: StreamDefinition, fields: dict[str, Any], expected: str
) -> None:
    found = [f"{spelled(each.place)}: {each.sentence}" for each in problems(mapping(to, **fields))]
    assert any(expected in each for each in found), found


def test_the_currency_of_a_part_may_be_one_of_a_record_around_it() -> None:
    price = record(price=NUMBER | {"path": "price"})
    lines = {"transform": "list", "path": "l", "of": price}
    declared = {"currency": {"transform": "currency", "path": "cur", "code": "alpha"}, "lines": lines}
    assert list(problems(mapping(OUTER, **declared))) == []
