"""Every bad thing that a raw record can be has a named outcome; everything else is an event."""

import hmac
import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from itertools import chain
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from lozenge.contracts import ids
from lozenge_upstream.normalise.mapping import Mapping
from lozenge_upstream.normalise.mapping_files import mapping_of
from lozenge_upstream.normalise.normaliser import normalise
from lozenge_upstream.normalise.output_records import outputs
from tests.streams import AUTH
from tests.upstream.samples import (
    ABSENT,
    ISO,
    JSON,
    KEY,
    NOW,
    PAN,
    PARTITIONS,
    TOPICS,
    Raw,
    flat,
    frame,
    iso,
    normalised,
    target,
)

REQUIRED = "event_time card_id merchant_id terminal_id mcc country amount currency channel auth_result"
ALL_MISSING = ", ".join(f"missing:{name}" for name in REQUIRED.split())
PAN_AS_ID = "4000000000000002"
TWICE = flat().replace(b'"mcc": "5411"', b'"mcc": "1111", "mcc": "5411"')
DEEP = b'{"a":' * 2000 + b"1" + b"}" * 2000

REFUSED: dict[str, tuple[bytes | None, str]] = {
    "tombstone": (None, "tombstone"),
    "empty": (b"", "empty"),
    "blank": (b"  \n", "invalid-json"),
    "invalid utf-8 in a field": (flat().replace(b"m-1", b"m\xff\xfe"), "invalid-utf8"),
    "invalid utf-8 and no json": (b"\xc3\x28", "invalid-utf8"),
    "utf-8 of a surrogate": (flat().replace(b"m-1", b"\xed\xa0\x80"), "invalid-utf8"),
    "half of a character": (flat(merchant="m-?").replace(b"?", rb"\ud83d"), "lone-surrogate"),
    "the other half": (flat(note="?").replace(b"?", rb"\uDE00"), "lone-surrogate"),
    "halves the wrong way round": (flat(merchant="m-?").replace(b"?", rb"\ude00\ud83d"), "lone-surrogate"),
    "cut off": (flat()[:-20], "invalid-json"),
    "broken within an optional field": (flat(txn_id="t-?").replace(b"?", b"\x02"), "invalid-json"),
    "a field that does not end": (flat().replace(b't-1"', b"t-1"), "invalid-json"),
    "a bracket too many": (flat() + b"]", "invalid-json"),
    "brackets too many, and garbage": (flat() + b"]}x", "invalid-json"),
    "garbage after it": (flat() + b"x", "invalid-json"),
    "two records": (flat() + flat(), "invalid-json"),
    "two records, comma": (flat() + b"," + flat(), "invalid-json"),
    "an array": (b"[" + flat() + b"]", "invalid-json"),
    "an empty array": (b"[]", "invalid-json"),
    "a string": (b'"authorisation"', "invalid-json"),
    "a number": (b"5", "invalid-json"),
    "null": (b"null", "invalid-json"),
    "single quotes": (flat().replace(b'"', b"'"), "invalid-json"),
    "not a number": (flat().replace(b'"12.50"', b"NaN"), "invalid-json"),
    "nested too deep": (DEEP, "invalid-json"),
    "a megabyte of garbage": (b"\x7f" * 1_000_000, "invalid-json"),
    "an empty object": (b"{}", ALL_MISSING),
    "absent": (flat(merchant=ABSENT), "missing:merchant_id"),
    "null field": (flat(terminal=None), "missing:terminal_id"),
    "blank field": (flat(mcc="  "), "missing:mcc"),
    "nested": (flat(merchant={"id": "m-1"}), "type:merchant_id"),
    "list": (flat(amount=["12.50"]), "type:amount"),
    "boolean": (flat(country=True), "type:country"),
    "nested where a default exists": (flat(channel={"a": 1}), "type:channel"),
    "optional, but of another type": (flat(account=[1]), "type:account_id"),
    "transaction id with a separator": (flat(txn_id="a\x1fb"), "format:transaction_id"),
    "control character": (flat(merchant="m\x00"), "format:merchant_id"),
    "control character of the second set": (flat(merchant="m\u009b31m"), "format:merchant_id"),
    "too long": (flat(merchant="m" * 129), "format:merchant_id"),
    "card number that is not digits": (flat(pan="4000x01234567890"), "format:card_id"),
    "the user-assigned code of nobody": (flat(country="XX"), "unknown:country"),
    "the United Kingdom's other code": (flat(country="UK"), "unknown:country"),
    "card number too short": (flat(pan="40000012345"), "format:card_id"),
    "card number as account": (flat(account="4000 0000 0000 0002"), "pan:account_id"),
    "card number in a descriptor": (flat(merchant="REFUND 4000000000000002"), "pan:merchant_id"),
    "card number as a number": (flat(terminal=4000000000000002), "pan:terminal_id"),
    "mcc of three digits": (flat(mcc=742), "format:mcc"),
    "amount in words": (flat(amount="twelve"), "format:amount"),
    "amount with a comma": (flat(amount="12,50"), "format:amount"),
    "a thousands separator": (flat(amount="1,250.00"), "format:amount"),
    "amount with its currency": (flat(amount="12.50 EUR"), "format:amount"),
    "exponent of a number too large": (flat().replace(b'"12.50"', b"1e25"), "format:amount"),
    "exponent beyond every number": (flat().replace(b'"12.50"', b"1e999999999"), "format:amount"),
    "exponent that needs more decimals": (flat(amount="1.25E-2"), "decimals:amount"),
    "exponent that leaves too many digits": (flat(amount="1E+14"), "digits:amount"),
    "tiny exponent": (flat(amount="1e-30"), "format:amount"),
    "an exponent without digits": (flat(amount="1e"), "format:amount"),
    "number longer than a decimal": (flat().replace(b'"12.50"', b"1." + b"0" * 40 + b"1"), "format:amount"),
    "object with a key twice as amount": (flat().replace(b'"12.50"', b'{"a":1,"a":2}'), "invalid-json"),
    "tiny float": (flat(amount=1e-7), "decimals:amount"),
    "number longer than a decimal, and an exponent elsewhere": (
        flat(fee=0).replace(b'"12.50"', b"1." + b"0" * 40 + b"1").replace(b'"fee": 0', b'"fee": {"amount": 2e0}'),
        "format:amount",
    ),
    "the framing of a schema registry": (b"\x00\x00\x00\x00\x07" + flat(), "framed"),
    "Avro in the framing of a schema registry": (b"\x00\x00\x00\x00\x07\x02\xff", "framed"),
    "UTF-16": (flat().decode().encode("utf-16"), "invalid-utf8"),
    "card number already masked": (flat(pan="400000******7890"), "format:card_id"),
    "card number of one digit all along": (flat(pan="0000000000000000"), "format:card_id"),
    "card number of twenty digits": (flat(pan="4" + "0" * 19), "format:card_id"),
    "amount without digits after the point": (flat(amount="12."), "format:amount"),
    "too many decimals": (flat(amount="12.345"), "decimals:amount"),
    "zero-decimal currency with decimals": (flat(amount="1200.5", currency="JPY"), "decimals:amount"),
    "three-decimal currency with four": (flat(amount="1.2345", currency="KWD"), "decimals:amount"),
    "too many digits": (flat(amount="123456789012345"), "digits:amount"),
    "far too many digits": (flat(amount="9" * 900), "digits:amount"),
    "a number longer than JSON readers take": (flat().replace(b'"12.50"', b"9" * 2000), "invalid-json"),
    "unknown currency": (flat(currency="XYZ"), "unknown:currency"),
    "unknown currency, bad amount": (flat(currency="XYZ", amount="?"), "format:amount, unknown:currency"),
    "lower-case codes": (flat(currency="eur", country="de"), "unknown:country, unknown:currency"),
    "unknown country": (flat(country="ZZ"), "unknown:country"),
    "unknown result": (flat(result="perhaps"), "unknown:auth_result"),
    "time without a zone": (flat(ts="2026-03-01T11:59:58"), "format:event_time"),
    "a date": (flat(ts="2026-03-01"), "format:event_time"),
    "no such day": (flat(ts="2026-02-30T11:59:58Z"), "format:event_time"),
    "no such hour": (flat(ts="2026-02-28T25:59:58Z"), "format:event_time"),
    "a sixtieth second within an hour": (flat(ts="2026-02-28T12:00:60Z"), "format:event_time"),
    "after the end of a day": (flat(ts="2026-02-28T24:00:01Z"), "format:event_time"),
    "time as a number": (flat(ts=1772366398), "format:event_time"),
    "a clock that was never set": (flat(ts="1970-01-01T00:00:00Z"), "range:event_time"),
    "before 1980": (flat(ts="1979-12-31T23:59:59Z"), "range:event_time"),
    "the year 0000": (flat(ts="0000-01-01T00:00:00Z"), "range:event_time"),
    "eleven minutes ahead": (flat(ts="2026-03-01T12:11:00Z"), "future:event_time"),
    "just over ten minutes ahead": (flat(ts="2026-03-01T12:10:00.123001Z"), "future:event_time"),
    "the year 9999": (flat(ts="9999-12-31T23:59:59Z"), "future:event_time"),
    "an address without a host": (flat(email="ann"), "format:email_token"),
    "no internet address": (flat(ip="localhost"), "format:ip_address"),
    "a country that is none, of an address": (flat(ip_country="UK"), "unknown:ip_country"),
    "neither present nor absent": (flat(card_present="perhaps"), "unknown:card_present"),
    "degrees in words": (flat(lat="north"), "format:latitude"),
    "card number as device": (flat(device="4000000000000002"), "pan:device_id"),
    "a settlement amount without a currency": (flat(settlement_amount="1.00"), "missing:settlement_currency"),
    "a settlement amount with too many decimals": (
        flat(settlement_amount="1.5", settlement_currency="JPY"),
        "decimals:settlement_amount",
    ),
    "several problems": (
        flat(merchant=None, amount=[1], currency="?", ts="soon"),
        "format:event_time, missing:merchant_id, type:amount, unknown:currency",
    ),
}

OPTIONAL = [field.name for field in AUTH.fields if field.optional]
EMAIL = f"email_{hmac.new(KEY, b'ann@example.org', 'sha256').hexdigest()[:24]}"

ACCEPTED: dict[str, tuple[bytes, dict[str, Any]]] = {
    "without any field that may be absent": (flat(account=ABSENT), dict.fromkeys(OPTIONAL)),
    "with every field that may be absent": (
        flat(
            kind="reversal",
            original="t-0",
            entry_mode="contactless",
            card_present=True,
            response_code=51,
            acquirer="q-1",
            stan=17,
            settlement_amount=13.7,
            settlement_currency="USD",
            device="d-1",
            ip="2001:db8::1",
            ip_country="FR",
            email=" Ann@Example.org ",
            lat=48.85,
            lon="-2.35",
        ),
        {
            "message_kind": "reversal",
            "original_event_id": ids.event_id("auth_json", "t-0"),
            "entry_mode": "contactless",
            "card_present": True,
            "response_code": "051",
            "acquirer_id": "q-1",
            "trace_number": "000017",
            "settlement_amount": Decimal("13.7"),
            "settlement_currency": "USD",
            "device_id": "d-1",
            "ip_address": "2001:db8::1",
            "ip_country": "FR",
            "email_token": EMAIL,
            "latitude": 48.85,
            "longitude": -2.35,
            "event_id": ids.event_id("auth_json", "t-1"),
        },
    ),
    "an e-mail address in upper case": (flat(email="ANN@EXAMPLE.ORG"), {"email_token": EMAIL}),
    "a settlement currency alone": (flat(settlement_currency="USD"), {"settlement_amount": None}),
    "an unknown message": (flat(kind="probe", entry_mode="?"), {"message_kind": "other", "entry_mode": "other"}),
    "degrees with an exponent": (flat().replace(b"}", b', "lat": 4.885e1}'), {"latitude": 48.85}),
    "as it is": (flat(), {"amount": Decimal("12.5"), "currency": "EUR", "account_id": "a-1", "country": "DE"}),
    "amount as a number": (flat(amount=12.5), {"amount": Decimal("12.5")}),
    "a hundred as Java prints it": (flat(amount="1E+2"), {"amount": Decimal(100)}),
    "a number with an exponent": (flat().replace(b'"12.50"', b"1E+2"), {"amount": Decimal(100)}),
    "a number with a lower-case exponent": (flat().replace(b'"12.50"', b"-1.25e1"), {"amount": Decimal("-12.5")}),
    "an exponent with every digit": (
        flat().replace(b'"12.50"', b"1.234567890123456E13"),
        {"amount": Decimal("12345678901234.56")},
    ),
    "nothing as Java prints it": (flat(amount="0E-10"), {"amount": Decimal(0)}),
    "a byte order mark": (b"\xef\xbb\xbf" + flat(), {"merchant_id": "m-1"}),
    "card number of nineteen digits": (flat(pan=6220000000000000123), {"merchant_id": "m-1"}),
    "a number with more digits than a double": (
        flat().replace(b'"12.50"', b"12345678901234.56"),
        {"amount": Decimal("12345678901234.56")},
    ),
    "ten million and a fraction": (flat(amount=10000000.5), {"amount": Decimal("10000000.5")}),
    "negative number": (flat(amount=-12.5), {"amount": Decimal("-12.5")}),
    "negative": (flat(amount="-12.50"), {"amount": Decimal("-12.5")}),
    "negative zero": (flat(amount="-0.00"), {"amount": Decimal(0)}),
    "zero": (flat(amount=0), {"amount": Decimal(0)}),
    "leading and trailing zeros": (flat(amount="0000000000000000012.5000000000"), {"amount": Decimal("12.5")}),
    "zero-decimal currency": (flat(amount="1200", currency="JPY"), {"amount": Decimal(1200)}),
    "zero-decimal currency, written with zeros": (flat(amount="1200.00", currency="JPY"), {"amount": Decimal(1200)}),
    "three-decimal currency": (flat(amount="1.234", currency="KWD"), {"amount": Decimal("1.234")}),
    "four-decimal currency": (flat(amount="1.2345", currency="CLF"), {"amount": Decimal("1.2345")}),
    "largest": (flat(amount="99999999999999.99"), {"amount": Decimal("99999999999999.99")}),
    "spaces around": (flat(merchant="  m-1 ", amount=" 12.50 "), {"merchant_id": "m-1", "amount": Decimal("12.5")}),
    "spaces around the record": (b" \n" + flat() + b"\t ", {"merchant_id": "m-1"}),
    "identifier as a number": (flat(merchant=4711), {"merchant_id": "4711"}),
    "digits that no card number has": (flat(account="4000000000000003"), {"account_id": "4000000000000003"}),
    "a time in milliseconds": (flat(merchant="1772366400006"), {"merchant_id": "1772366400006"}),
    "card number as transaction id": (flat(txn_id=PAN_AS_ID), {"event_id": ids.event_id("auth_json", PAN_AS_ID)}),
    "unicode": (flat(merchant="Größe 株式会社 🏧"), {"merchant_id": "Größe 株式会社 🏧"}),
    "both halves": (flat(merchant="m-?").replace(b"?", rb"\uD83D\ude00"), {"merchant_id": "m-\U0001f600"}),
    "the text of a half": (flat(merchant="m-?").replace(b"?", rb"\\ud83d"), {"merchant_id": r"m-\ud83d"}),
    "no account": (flat(account=ABSENT), {"account_id": None}),
    "null account": (flat(account=None), {"account_id": None}),
    "a key twice: the last counts": (TWICE, {"mcc": "5411"}),
    "a megabyte of an unknown field": (flat(note="x" * 1_000_000, more={"a": [1]}), {"merchant_id": "m-1"}),
    "unknown channel": (flat(channel="carrier pigeon"), {"channel": "other"}),
    "declined": (flat(result="declined"), {"auth_result": "declined"}),
    "other offset": (flat(ts="2026-03-01T17:29:58+05:30"), {"event_micros": datetime(2026, 3, 1, 11, 59, 58)}),
    "offset without colon": (flat(ts="2026-03-01 06:59:58-0500"), {"event_micros": datetime(2026, 3, 1, 11, 59, 58)}),
    "offset across New Year": (
        flat(ts="2026-01-01T01:00:00+02:00"),
        {"event_micros": datetime(2025, 12, 31, 23, 0, 0)},
    ),
    "the end of a day": (flat(ts="2026-02-28T24:00:00Z"), {"event_micros": datetime(2026, 3, 1)}),
    "the end of a year, elsewhere": (
        flat(ts="2025-12-31T24:00+01:00"),
        {"event_micros": datetime(2025, 12, 31, 23)},
    ),
    "a leap second": (flat(ts="2016-12-31T23:59:60.5Z"), {"event_micros": datetime(2016, 12, 31, 23, 59, 59, 500000)}),
    "nanoseconds": (
        flat(ts="2026-03-01T11:59:58.123456789Z"),
        {"event_micros": datetime(2026, 3, 1, 11, 59, 58, 123456)},
    ),
    "exactly ten minutes ahead": (
        flat(ts="2026-03-01T12:10:00.123Z"),
        {"event_micros": datetime(2026, 3, 1, 12, 10, 0, 123000)},
    ),
    "Kosovo": (flat(country="XK"), {"country": "XK"}),
    **{
        f"time as {text}": (flat(ts=text), {"event_micros": datetime(2026, 3, 1, 11, 0, 0, micros)})
        for text, micros in {
            "2026-03-01T11:00Z": 0,
            "2026-03-01T11:00+00:00": 0,
            "2026-03-01 11:00:00+00": 0,
            "20260301T110000Z": 0,
            "2026-03-01T12:00:00+01": 0,
            "2026-03-01T12:00+01": 0,
            "20260301T1100Z": 0,
            "20260301T120000+0100": 0,
            "2026-03-01 11:00:00.123456+00": 123456,
            "2026-03-01T11:00:00,123Z": 123000,
            "2026-03-01t11:00:00z": 0,
            "2026-03-01T11:00:00Z[UTC]": 0,
            "2026-03-01T12:00:00+01:00[Europe/Berlin]": 0,
            "2026-03-01T11:00:00.1234567891Z": 123456,
            "2026-03-01 11:00:00 +00": 0,
            "2026-03-01 11:00Z": 0,
            "20260301110000Z": 0,
            "20260301110000.5Z": 500000,
            "2026-03-01 11:00:00 UTC": 0,
            "2026-03-01 11:00:00.123456 UTC": 123456,
            "2026-03-01 12:00:00 +0100": 0,
            "2026-03-01 11:00:00 +0000 UTC": 0,
            "2026-03-01T11:00Z[Europe/London]": 0,
            "20260301 110000Z": 0,
        }.items()
    },
    "no transaction id": (flat(txn_id=None), {"event_id": ids.event_id("auth_json", "AUTH-JSON/1/0")}),
    "transaction id": (flat(), {"event_id": ids.event_id("auth_json", "t-1")}),
}


def _at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]


ISO_TIMES = {
    "now": (_at(2026, 3, 1, 12), "0301115958", _at(2026, 3, 1, 11, 59, 58)),
    "ahead within ten minutes": (_at(2026, 3, 1, 12), "0301121000", _at(2026, 3, 1, 12, 10)),
    "eleven months ago": (_at(2026, 3, 1, 12), "0402120000", _at(2025, 4, 2, 12)),
    "last year's end": (_at(2026, 1, 1, 0, 0, 5), "1231235959", _at(2025, 12, 31, 23, 59, 59)),
    "next year, clocks differ": (_at(2025, 12, 31, 23, 59), "0101000001", _at(2026, 1, 1, 0, 0, 1)),
    "29 February in a leap year": (_at(2028, 2, 29, 12), "0229110000", _at(2028, 2, 29, 11)),
    "29 February, read in March of the next year": (_at(2029, 3, 1), "0229110000", _at(2028, 2, 29, 11)),
}
ISO_TIMES_REFUSED = {
    "a wrong clock": (_at(2026, 3, 1, 12), "0301121001", "future:event_time"),
    "local time instead of UTC": (_at(2026, 7, 1, 12), "0701140000", "future:event_time"),
    "local time across New Year": (_at(2025, 12, 31, 23), "0101010000", "future:event_time"),
    "29 February, next month": (_at(2028, 2, 1), "0229110000", "future:event_time"),
    "29 February, years ago": (_at(2027, 12, 1), "0229110000", "format:event_time"),
    "2100 is no leap year": (_at(2101, 3, 1), "0229110000", "format:event_time"),
}
"""Times that no year makes one of the months before the raw record."""

ISO_REFUSED = {
    "31 February": (iso(de7="0231120000"), "format:event_time"),
    "month 13": (iso(de7="1301120000"), "format:event_time"),
    "numeric currency unknown": (iso(de49="000"), "unknown:currency"),
    "alphabetic currency where numeric belongs": (iso(de49="EUR"), "unknown:currency"),
    "numeric country unknown": (iso(de19="999"), "unknown:country"),
    "decimal point in minor units": (iso(de4="12.50"), "format:amount"),
    "too many minor units": (iso(de4="1" * 15), "digits:amount"),
    "a remainder above the amount": (iso(mti="0420", de95="000000001251" + "0" * 30), "format:amount"),
    "a remainder that is no number": (iso(mti="0420", de95="12.50"), "format:amount"),
    "neither payment nor reversal": (iso(mti="0900"), "kind:mti"),
    "the version of 2003": (iso(mti="2100"), "kind:mti"),
    "an advice without a response code": (iso(mti="0120", de39=ABSENT), "missing:auth_result"),
    "a response without a response code": (iso(mti="1110", de39=ABSENT), "missing:auth_result"),
    **{
        f"network management {mti}": (json.dumps({"mti": mti, "de11": "1"}).encode(), "skip:auth_iso8583/no_payment")
        for mti in ("0800", "0810", "0820", "1804", "1814", "0302", "0520", "0620")
    },
    "network management that has an amount": (iso(mti="0800"), "skip:auth_iso8583/no_payment"),
    **{
        f"a request that nobody has answered {mti}": (
            iso(mti=mti, de39=absent),
            "skip:auth_iso8583/unanswered_request",
        )
        for mti, absent in (
            ("0100", ABSENT),
            ("0101", None),
            ("0200", ""),
            ("1100", " "),
            ("1201", ABSENT),
            (100, None),
        )
    },
    "no message type": (iso(mti=ABSENT), "missing:amount"),
}

ISO_ID = ids.event_id("auth_iso8583", "01\x1ft-1\x1f000001\x1f\x1fx-1")
REVERSAL_ID = ids.event_id("auth_iso8583", "04\x1ft-1\x1f000001\x1f\x1fx-1")
"""A payment and its reversal, which repeats the retrieval reference, are two events."""
ENTRY_MODES = {
    **dict.fromkeys(("010", "011", "021", "022", "050", "052", "072", "079", "900", "902", "910", "911"), "pos"),
    "810": "ecom",
    "811": "ecom",
    "100": "recurring",
    "101": "recurring",
    "000": "other",
    "5": "other",
}

ORIGINAL = "0110" + "000001" + "0301115958" + "0" * 22
"""Field 90 of a reversal: the message type and trace number of its payment, and more."""

ISO_ACCEPTED: dict[str, tuple[bytes, dict[str, Any]]] = {
    "a reversal that names its payment": (
        iso(mti="0420", de11="000002", de90=ORIGINAL, de5="000000001370", de50="840"),
        {
            "original_event_id": ISO_ID,
            "message_kind": "reversal",
            "settlement_amount": Decimal("-13.7"),
            "settlement_currency": "USD",
            "trace_number": "000002",
        },
    ),
    "a reversal of a part, settled": (
        iso(mti="0420", de5="000000001370", de50="840", de95="000000000500" + "000000000370" + "0" * 18),
        {"amount": Decimal("-7.5"), "settlement_amount": Decimal(-10)},
    ),
    "a payment with original data elements": (iso(de90=ORIGINAL), {"original_event_id": None}),
    "a reversal of 1993": (
        iso(mti="1420", de11="000002", de39="400", de32="123456", de56="1100000001" + "260301115958" + "06123456"),
        {"original_event_id": ids.event_id("auth_iso8583", "11\x1ft-1\x1f000001\x1f123456\x1fx-1")},
    ),
    "a payment of 1993 with original data elements": (
        iso(mti="1110", de39="000", de56="1100000001" + "260301115958" + "06123456"),
        {"original_event_id": None},
    ),
    "a reversal of 1993 whose original data elements are none": (
        iso(mti="1420", de39="400", de56="unknown"),
        {"original_event_id": None},
    ),
    **{
        f"the kind of {mti}": (iso(mti=mti, de39="000"), {"message_kind": kind})
        for mti, kind in (
            *((mti, "authorisation") for mti in ("0100", "0111", "1110")),
            *((mti, "advice") for mti in ("0120", "0130", "0220", "1121", "1220")),
            *((mti, "financial") for mti in ("0200", "0210", "1210")),
            *((mti, "reversal") for mti in ("0400", "0421", "1430")),
            *((mti, "chargeback") for mti in ("0422", "1422")),
        )
    },
    **{
        f"read by {'nobody says what' if mode is ABSENT else mode}": (
            iso(mti=mti, de39="000", de22=mode),
            {"entry_mode": how, "card_present": None},
        )
        for mti, mode, how in (
            *(("0100", mode, "chip") for mode in ("051", "950")),
            *(("0100", mode, "contactless") for mode in ("071", "072", "910")),
            *(("0100", mode, "magstripe") for mode in ("021", "901", 21)),
            *(("0100", mode, "ecom") for mode in ("812", "091")),
            ("0100", "801", "fallback"),
            ("0100", "010", "keyed"),
            ("0100", "102", "credential_on_file"),
            ("0100", ABSENT, "other"),
        )
    },
    "read by a chip, in 1993": (
        iso(mti="1110", de39="000", de22="510101513344"),
        {"entry_mode": "chip", "card_present": True},
    ),
    "typed on a page, in 1993": (
        iso(mti="1110", de39="000", de22="100050S13344"),
        {"entry_mode": "ecom", "card_present": False},
    ),
    "the card was there": (iso(de25="00"), {"card_present": True}),
    "ordered by telephone": (iso(de25=8), {"card_present": False}),
    "a condition that says nothing": (iso(de25="77"), {"card_present": None}),
    "codes with three digits": (iso(de39="51", de32="12345"), {"response_code": "051", "acquirer_id": "12345"}),
    "a merchant of digits, with a right check digit": (iso(de42="378282246310005"), {"merchant_id": "378282246310005"}),
    "as it is": (
        iso(),
        {
            "amount": Decimal("12.5"),
            "currency": "EUR",
            "country": "DE",
            "channel": "pos",
            "auth_result": "approved",
            "account_id": None,
            "event_id": ISO_ID,
        },
    ),
    "yen": (iso(de49="392", de19="392"), {"amount": Decimal(1250), "currency": "JPY", "country": "JP"}),
    "dinar": (iso(de49="414"), {"amount": Decimal("1.25"), "currency": "KWD"}),
    "unidad de fomento": (iso(de49="990"), {"amount": Decimal("0.125"), "currency": "CLF"}),
    "lek, leading zeros": (iso(de49="008", de19="008"), {"currency": "ALL", "country": "AL"}),
    "codes as numbers": (
        iso(de49=8, de19=8, de4=1250),
        {"currency": "ALL", "country": "AL", "amount": Decimal("12.5")},
    ),
    "reversal": (iso(mti="0400"), {"amount": Decimal("-12.5")}),
    "declined": (iso(de39="51"), {"auth_result": "declined"}),
    **{
        f"approved as {code}": (iso(de39=code), {"auth_result": "approved"})
        for code in ("08", "10", "11", "16", "85", "87")
    },
    "an unknown response code": (iso(de39="N7"), {"auth_result": "declined"}),
    **{
        f"reversal, as the customer cancelled: {mti}": (iso(mti=mti, de39="17"), {"auth_result": "approved"})
        for mti in ("0400", "0401", "0420", "0421")
    },
    "response code as a number": (iso(de39=0), {"auth_result": "approved"}),
    "another response code as a number": (iso(de39=5), {"auth_result": "declined"}),
    "entry mode as a number": (iso(de22=10), {"channel": "pos"}),
    "cash, as a number": (iso(de3=11000), {"channel": "atm"}),
    "adjustment, as a number": (iso(de3=20000), {"amount": Decimal("12.5")}),
    "refund, as a number": (iso(de3=200000), {"amount": Decimal("-12.5")}),
    "reversal without a reason": (iso(mti="0400", de39=ABSENT), {"auth_result": "approved"}),
    "answer to a reversal of nothing": (iso(mti="0410", de39="25"), {"auth_result": "declined"}),
    "refund": (iso(de3="200000"), {"amount": Decimal("-12.5")}),
    "original credit": (iso(de3="260000"), {"amount": Decimal("-12.5")}),
    "reversal of a refund": (iso(de3="200000", mti="0400"), {"amount": Decimal("12.5")}),
    "purchase with cash back": (iso(de3="090000"), {"amount": Decimal("12.5")}),
    "reversal of a part": (iso(mti="0420", de95="000000000500" + "0" * 30), {"amount": Decimal("-7.5")}),
    "reversal of a part in dinar": (iso(mti="0420", de95="000000000500", de49="414"), {"amount": Decimal("-0.75")}),
    "reversal of the whole": (iso(mti="0420", de95="0" * 42), {"amount": Decimal("-12.5")}),
    "a payment with replacement amounts": (iso(de95="000000000500" + "0" * 30), {"amount": Decimal("12.5")}),
    "e-commerce": (iso(de22="812"), {"channel": "ecom"}),
    "cash machine by its merchant": (iso(de18="6011"), {"channel": "atm"}),
    "cash by its processing code": (iso(de3="011000"), {"channel": "atm"}),
    "no cash by its processing code": (iso(de3="001000"), {"channel": "pos"}),
    "no entry mode": (iso(de22=ABSENT), {"channel": "other"}),
    **{f"entry mode {mode}": (iso(de22=mode), {"channel": channel}) for mode, channel in ENTRY_MODES.items()},
    "a repeat of a response": (iso(mti="0111"), {"amount": Decimal("12.5"), "event_id": ISO_ID}),
    "a repeat of a request": (iso(mti="0101"), {"amount": Decimal("12.5"), "event_id": ISO_ID}),
    "a repeat of a reversal": (iso(mti="0401"), {"amount": Decimal("-12.5"), "event_id": REVERSAL_ID}),
    "an advice of a reversal": (iso(mti="0420", de7="0301115959"), {"event_id": REVERSAL_ID}),
    "no trace number": (iso(de11=ABSENT), {"event_id": ids.event_id("auth_iso8583", "01\x1ft-1\x1f\x1f\x1fx-1")}),
    "no reference": (iso(de37=ABSENT, mti="0400"), {"event_id": ids.event_id("auth_iso8583", "AUTH-ISO/1/0")}),
    "stored credential": (iso(de22="102"), {"channel": "recurring"}),
    "unknown entry mode": (iso(de22="999"), {"channel": "other"}),
    **{
        f"{mti}, approved {code}": (iso(mti=mti, de39=code), {"amount": Decimal(amount), "auth_result": "approved"})
        for mti, code, amount in (
            *((mti, "00", "12.5") for mti in ("0110", "0130", "0200", "0201", "0210", "0211", "0220", "0221", "0230")),
            *((mti, "000", "12.5") for mti in ("1100", "1110", "1120", "1121", "1200", "1210", "1220")),
            *(("1110", code, "12.5") for code in ("001", "002", "003", "007", 0, 2)),
            *((mti, code, "-12.5") for mti in ("1400", "1420", "1421") for code in ("000", "400", "911", None)),
            *(("1430", code, "-12.5") for code in ("000", "400")),
            ("0410", "00", "-12.5"),
            (110, "00", "12.5"),
        )
    },
    **{
        f"{mti}, declined {code}": (iso(mti=mti, de39=code), {"auth_result": "declined"})
        for mti, code in (
            *(("1110", code) for code in ("100", "116", "400", 116)),
            *(("1210", "909"), ("1430", "116")),
        )
    },
    **{
        f"entry mode of 1993: {mode}": (iso(mti="1110", de39="000", de22=mode), {"channel": channel})
        for mode, channel in {
            "210101213344": "pos",
            "510141013344": "recurring",
            "100050013344": "ecom",
            "100020013344": "other",
            "051": "pos",
        }.items()
    },
    "reversal of the whole in the version of 1993": (iso(mti="1420", de95="REF-77"), {"amount": Decimal("-12.5")}),
    "a time without its leading zero": (iso(de7=301115958), {"event_micros": datetime(2026, 3, 1, 11, 59, 58)}),
    "a merchant category without its leading zero": (iso(de18=742), {"mcc": "0742"}),
    "single messages and dual ones of one reference are two payments": (
        iso(mti="0210"),
        {"event_id": ids.event_id("auth_iso8583", "02\x1ft-1\x1f000001\x1f\x1fx-1")},
    ),
    "a message kind as a number": (iso(mti=100), {"amount": Decimal("12.5"), "event_id": ISO_ID}),
    "another terminal": (
        iso(de41="x-2"),
        {"event_id": ids.event_id("auth_iso8583", "01\x1ft-1\x1f000001\x1f\x1fx-2")},
    ),
}

HOSTILE = (
    *("-", "+", ".", "NaN", "Infinity", "-Infinity", "1e999", "0x1F", "٣", "null", "[", "{}", "%s", "\\", "$1"),
    *("epoch", "now", "-000000001", "0229999999", "9999999999", "2026-03-01T11:59:58+99:99", "999999-12-31T00:00:00Z"),
    *("\x00", "\U0010ffff", "\N{ZERO WIDTH JOINER}", "9" * 50 + "." + "9" * 50, "a" * 70_000),
)

WRITINGS_OF_A_CARD = {
    "a card in digits": flat(pan=PAN),
    "a card in groups": flat(pan=f"{PAN[:4]} {PAN[4:8]}-{PAN[8:12]} {PAN[12:]}"),
    "a card as a number": flat(pan=int(PAN)),
}

Outcomes = dict[str, Row]


def hostile(make: Callable[..., bytes]) -> dict[str, bytes]:
    """Records with each of the texts in each field."""
    return {
        f"hostile {field} {number}": make(**{field: text})
        for field in json.loads(make())
        for number, text in enumerate(HOSTILE)
    }


# all records of a mapping are one query: to plan it takes a second


@pytest.fixture(scope="module")
def flat_outcomes(upstream_spark: SparkSession) -> Outcomes:
    values = {name: value for name, (value, _) in (REFUSED | ACCEPTED).items()}
    assert len(values) == len(REFUSED) + len(ACCEPTED)
    values |= WRITINGS_OF_A_CARD | hostile(flat)
    return dict(zip(values, normalised(upstream_spark, [Raw(value) for value in values.values()]), strict=True))


@pytest.fixture(scope="module")
def iso_outcomes(upstream_spark: SparkSession) -> Outcomes:
    raws = {f"time {name}": Raw(iso(de7=text), timestamp=kafka) for name, (kafka, text, _) in ISO_TIMES.items()}
    raws |= {f"no time {name}": Raw(iso(de7=text), timestamp=at) for name, (at, text, _) in ISO_TIMES_REFUSED.items()}
    raws |= {f"refused {name}": Raw(value) for name, (value, _) in ISO_REFUSED.items()}
    raws |= {f"accepted {name}": Raw(value) for name, (value, _) in ISO_ACCEPTED.items()}
    raws |= {name: Raw(value) for name, value in hostile(iso).items()}
    return dict(zip(raws, normalised(upstream_spark, raws.values(), ISO), strict=True))


@pytest.mark.parametrize("name", REFUSED)
def test_a_record_is_refused_with_every_reason(name: str, flat_outcomes: Outcomes) -> None:
    assert flat_outcomes[name].reason == REFUSED[name][1]


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_valid_record_becomes_an_event(name: str, flat_outcomes: Outcomes) -> None:
    _assert_event(flat_outcomes[name], ACCEPTED[name][1])


def changed(**fields: dict[str, Any]) -> Mapping:
    """The mapping of AUTH-JSON with other transforms."""
    declared = JSON.model_dump(exclude_none=True)
    return mapping_of(declared | {"fields": declared["fields"] | fields}, AUTH)


SIGN = {"path": "type", "plus": ["PURCHASE"], "minus": ["REFUND"]}
RESULT = {"transform": "lookup", "path": "errors", "table": {"Bad PIN": "declined"}, "blank": "approved"}
# each is a plan of its own, so one mapping has several transforms
SEVERAL = changed(
    amount={"transform": "decimal", "path": "amount", "sign": SIGN},
    auth_result=RESULT,
    country={"transform": "country", "path": "country", "code": "alpha3"},
    event_time={"transform": "timestamp_epoch", "path": "ts", "unit": "s"},
    mcc={"transform": "text", "path": "mcc", "pattern": "[0-9]{4}", "pad": 4},
    merchant_id={"transform": "text", "path": '"card.merchant"'},
)
OTHERS = changed(
    mcc={"transform": "text", "path": "mcc"},
    amount={"transform": "decimal", "path": "amount", "invert": True},
    country={"transform": "lookup", "path": "country", "table": {"Kosovo": "XK"}},
    event_time={"transform": "timestamp_epoch", "path": "ts", "unit": "ms"},
    merchant_id={"transform": "text", "path": 'shop."a.b".id'},
)
INVERTED = changed(
    amount={"transform": "decimal", "path": "amount", "sign": SIGN, "invert": True},
    event_time={"transform": "timestamp_epoch", "path": "ts", "unit": "us"},
)
TOKENS = changed(
    event_time={"transform": "timestamp_epoch", "path": "ts", "unit": "ns"},
    card_id={"transform": "token", "path": "pan", "pattern": "tok_[a-z0-9]+"},
    amount={"transform": "decimal", "path": "amount", "credits": {"path": "type", "values": ["REFUND"]}},
    auth_result={
        "transform": "first",
        "of": [{"path": "type", "table": {"REVERSAL": "approved"}}, {"path": "result", "table": {"OK": "approved"}}],
    },
)
TOKEN = "card_" + hmac.digest(KEY, b"tok_1", "sha256").hex()[:24]


def several(**fields: Any) -> bytes:
    """A good record of `SEVERAL`."""
    dotted = {"card.merchant": "m-9", "card": {"merchant": "no"}}
    return flat(**({"ts": 1772362800, "country": "GBR", "type": "PURCHASE", **dotted} | fields))


def tokens(**fields: Any) -> bytes:
    """A good record of `TOKENS`."""
    return flat(**({"ts": 1772362800123456789, "pan": "tok_1", "result": "OK"} | fields))


def others(**fields: Any) -> bytes:
    """A good record of `OTHERS`."""
    return flat(
        **({"ts": 1772362800123, "country": "Kosovo", "amount": -100.0, "shop": {"a.b": {"id": "m-9"}}} | fields)
    )


def _eleven(micros: int = 0) -> dict[str, Any]:
    return {"event_micros": datetime(2026, 3, 1, 11, 0, 0, micros)}


DECLARED: dict[str, tuple[Mapping, bytes, dict[str, Any] | str]] = {
    "alpha-3": (SEVERAL, several(), {"country": "GB"}),
    "alpha-3 of Kosovo": (SEVERAL, several(country="XKX"), {"country": "XK"}),
    "no alpha-3": (SEVERAL, several(country="GB"), "unknown:country"),
    "three digits of a merchant category, without a pattern": (OTHERS, others(mcc="742"), "format:mcc"),
    "country by lookup": (OTHERS, others(), {"country": "XK"}),
    "money out is negative": (OTHERS, others(), {"amount": Decimal(100)}),
    "a payment by its type": (SEVERAL, several(amount="20.00"), {"amount": Decimal(20)}),
    "a refund by its type": (SEVERAL, several(amount="20.00", type="REFUND"), {"amount": Decimal(-20)}),
    "inverted, a refund by its type": (
        INVERTED,
        flat(ts=1772362800000000, amount="20.00", type="REFUND"),
        {"amount": Decimal(20)},
    ),
    "another type": (SEVERAL, several(type="BALANCE"), "kind:type"),
    "no type": (SEVERAL, several(type=ABSENT), "missing:amount"),
    "a merchant category without its zero": (SEVERAL, several(mcc=742), {"mcc": "0742"}),
    "a merchant category as a float": (SEVERAL, several(mcc=742.0), {"mcc": "0742"}),
    "a merchant category with a fraction": (SEVERAL, several(mcc=742.5), "format:mcc"),
    "a text is not padded": (SEVERAL, several(mcc="74x"), "format:mcc"),
    "five digits are not cut": (SEVERAL, several(mcc="07421"), "format:mcc"),
    "an absent field with a meaning": (SEVERAL, several(), {"auth_result": "approved"}),
    "a blank field with a meaning": (SEVERAL, several(errors=" "), {"auth_result": "approved"}),
    "a field with a word": (SEVERAL, several(errors="Bad PIN"), {"auth_result": "declined"}),
    "a field with an unknown word": (SEVERAL, several(errors="?"), "unknown:auth_result"),
    "a key with a dot": (SEVERAL, several(), {"merchant_id": "m-9"}),
    "a key with a dot within another": (OTHERS, others(), {"merchant_id": "m-9"}),
    "epoch in s": (SEVERAL, several(), _eleven()),
    "epoch in s, with a fraction": (SEVERAL, several(ts="1772362800.5"), _eleven(500_000)),
    "epoch in ms": (OTHERS, others(), _eleven(123_000)),
    "epoch in us": (INVERTED, flat(ts="1772362800123456", type="PURCHASE"), _eleven(123_456)),
    "epoch in ns": (TOKENS, tokens(), _eleven(123_456)),
    "epoch in ns with an exponent": (TOKENS, tokens(ts="1.772362800123456789E18"), _eleven(123_456)),
    "epoch in s, a number with a fraction": (SEVERAL, several(ts=1772362800.123456), _eleven(123_456)),
    "epoch in s, a number as Java prints it": (
        SEVERAL,
        several(ts="?").replace(b'"?"', b"1.7723628001234E9"),
        _eleven(123_400),
    ),
    "epoch in ms, a number as Java prints it": (
        OTHERS,
        others(ts="?").replace(b'"?"', b"1.772362800123E12"),
        _eleven(123_000),
    ),
    "epoch in a larger unit than declared": (OTHERS, others(ts=1772362800), "range:event_time"),
    "epoch zero": (OTHERS, others(ts=0), "range:event_time"),
    "a card by the token of its processor": (TOKENS, tokens(), {"card_id": TOKEN}),
    "a card that is no such token": (TOKENS, tokens(pan=PAN), "format:card_id"),
    "a credit to the card": (TOKENS, tokens(type="REFUND"), {"amount": Decimal("-12.5")}),
    "neither a payment nor a credit is declared": (TOKENS, tokens(type=ABSENT), {"amount": Decimal("12.5")}),
    "the word of the first table": (TOKENS, tokens(type="REVERSAL", result=ABSENT), {"auth_result": "approved"}),
    "the word of no table": (TOKENS, tokens(result="KO"), "unknown:auth_result"),
    "no word at all": (TOKENS, tokens(result=ABSENT), "missing:auth_result"),
    "epoch in the wrong unit": (SEVERAL, several(ts=1772362800123), "format:event_time"),
    "epoch of nineteen digits": (SEVERAL, several(ts="9" * 19), "format:event_time"),
    "no number": (SEVERAL, several(ts="soon"), "format:event_time"),
}


@pytest.fixture(scope="module")
def declared_outcomes(upstream_spark: SparkSession) -> Outcomes:
    """Those of equal mappings together: each mapping is a plan of its own."""
    found: Outcomes = {}
    for mapping in {id(mapping): mapping for mapping, _, _ in DECLARED.values()}.values():
        cases = {name: value for name, (of, value, _) in DECLARED.items() if of is mapping}
        found |= dict(zip(cases, normalised(upstream_spark, [Raw(v) for v in cases.values()], mapping), strict=True))
    return found


@pytest.mark.parametrize("name", DECLARED)
def test_a_source_may_write_it_in_another_way(name: str, declared_outcomes: Outcomes) -> None:
    wanted = DECLARED[name][2]
    if isinstance(wanted, str):
        assert declared_outcomes[name].reason == wanted
    else:
        _assert_event(declared_outcomes[name], wanted)


@pytest.mark.parametrize("name", ISO_TIMES)
def test_the_year_comes_from_the_raw_record(name: str, iso_outcomes: Outcomes) -> None:
    _assert_event(iso_outcomes[f"time {name}"], {"event_micros": ISO_TIMES[name][2]})


@pytest.mark.parametrize("name", ISO_TIMES_REFUSED)
def test_a_time_without_a_year_is_never_moved_by_one(name: str, iso_outcomes: Outcomes) -> None:
    assert iso_outcomes[f"no time {name}"].reason == ISO_TIMES_REFUSED[name][2]


@pytest.mark.parametrize("name", ISO_REFUSED)
def test_an_iso_record_is_refused_with_its_reason(name: str, iso_outcomes: Outcomes) -> None:
    assert iso_outcomes[f"refused {name}"].reason == ISO_REFUSED[name][1]


@pytest.mark.parametrize("name", ISO_ACCEPTED)
def test_a_valid_iso_record_becomes_an_event(name: str, iso_outcomes: Outcomes) -> None:
    _assert_event(iso_outcomes[f"accepted {name}"], ISO_ACCEPTED[name][1])


def test_a_payment_and_its_reversal_are_two_events_that_cancel_each_other_out(iso_outcomes: Outcomes) -> None:
    """They have one retrieval reference (DE37); the request, its response and their repeats are one event."""
    paid, back = (iso_outcomes[f"accepted {name}"] for name in ("as it is", "an advice of a reversal"))
    repeats = [iso_outcomes[f"accepted a repeat of a {what}"] for what in ("request", "response", "reversal")]
    by_id = {row.event_id: row.amount for row in (paid, back, *repeats)}
    assert len(by_id) == 2
    assert sum(by_id.values()) == 0


def test_one_card_has_one_token_however_it_is_written(flat_outcomes: Outcomes) -> None:
    assert len({flat_outcomes[name].card_id for name in WRITINGS_OF_A_CARD}) == 1


def test_no_text_in_any_field_can_stop_the_query(flat_outcomes: Outcomes, iso_outcomes: Outcomes) -> None:
    of_each = [
        [row for name, row in outcomes.items() if name.startswith("hostile")]
        for outcomes in (flat_outcomes, iso_outcomes)
    ]
    assert all(len(rows) > 10 * len(HOSTILE) for rows in of_each)
    for row in chain(*of_each):
        assert row.reason != "", row.value
        assert row.reason is not None or None not in (row.event_micros, row.card_id, row.amount, row.country)


def test_no_reason_contains_a_card_number(flat_outcomes: Outcomes) -> None:
    assert not [row.reason for row in flat_outcomes.values() if row.reason and any(c in row.reason for c in "0123")]


NO_CLOCK = {
    "none at all": -1_000,
    "the epoch": 0,
    "seconds": 1_772_366_400_000,
    "microseconds": 1_772_366_400_000_000_000,
    "the last that Spark can read": 9_223_372_036_854_775_000,
    "before the year 1": -(10**18),
    "the year 2200": 7_258_118_400_000_000,
}
"""Kafka timestamps of producers that count in another unit, in microseconds since 1970."""


@pytest.mark.parametrize("mapping", [JSON, ISO], ids=lambda mapping: mapping.source)
def test_a_record_whose_kafka_timestamp_is_no_time_is_a_dead_letter_that_says_so(
    mapping: Mapping, upstream_spark: SparkSession
) -> None:
    value = flat() if mapping is JSON else iso(de7="0114102030")
    raws = frame(upstream_spark, [Raw(value, offset=n) for n in range(len(NO_CLOCK))], mapping)
    times = F.array(*(F.lit(micros).cast("bigint") for micros in NO_CLOCK.values()))
    raws = raws.withColumn("timestamp", F.timestamp_micros(F.get(times, F.col("offset").cast("int"))))
    rows = outputs(normalise(raws, mapping, KEY), mapping.source, target(), PARTITIONS).collect()
    assert {(row.topic, row.reason) for row in rows} == {(TOPICS.dead_letters("upstream"), "range:raw.timestamp")}
    assert {bytes(row.value) for row in rows} == {value}
    assert [dict(row.headers)["first-failed-at"] for row in rows] == [None] * len(NO_CLOCK)


def _assert_event(row: Row, expected: dict[str, Any]) -> None:
    assert row.reason is None
    for name, value in expected.items():
        if isinstance(value, datetime):
            assert datetime.fromtimestamp(row[name] / 1e6, UTC) == value.replace(tzinfo=UTC)
        else:
            assert row[name] == value
    assert datetime.fromtimestamp(row.event_micros / 1e6, UTC) <= NOW.replace(year=2200)
