"""Raw records as nobody would send them: good ones of a source, good ones with something wrong, and noise."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from hypothesis import given, seed, settings
from hypothesis import strategies as st

from lozenge.contracts.money import ALPHABETIC, MINOR_DIGITS
from lozenge_upstream.normalise.countries import ALPHABETIC as COUNTRIES
from lozenge_upstream.normalise.mapping import Mapping
from tests.upstream.samples import ISO_FIELDS, JSON, JSON_FIELDS, NOW, Raw

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES = (
    _EPOCH - timedelta(milliseconds=1),  # Kafka's "no timestamp"
    _EPOCH,
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(2024, 2, 29, 23, 59, 59, 999000, UTC),
    datetime(2100, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999000, UTC),
)
_HEADERS: tuple[tuple[tuple[str, bytes | None], ...] | None, ...] = (
    None,
    (),
    (("traceparent", b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01"),),
    (("traceparent", b"\xff\xfe"), ("traceparent", None)),
    (("", None), ("\x00", b"\x00"), ("ß🏧" * 50, b"x" * 5000)),
    (("attempt", b"999999999"), ("attempt", b"-1"), ("attempt", b"9" * 400)),
    (("__connect.errors.topic", None), ("first-failed-at", b"never")),
)
_TEXTS = (
    *("", " ", "\t", "null", "true", "false", "NaN", "Infinity", "-", ".", "1e400", "-0", "+1", "0x1F", "٣", "१२"),
    *(
        "9" * 15,
        "9" * 400,
        "-" + "9" * 14 + ".9999",
        "0." + "0" * 60 + "1",
        "12,50",
        "1 2",
        "12.5.0",
        "1e2",
        "00012.50",
    ),
    *("\x00", "a\x00b", "\x1f", "\x7f", "\x85", "\u2028", "\ufeff", "\ufffd", "\u200d", "\u202e", "e\u0301"),
    *("\ud800", "\udfff", "m-\ud83d", "\ude00\ud83d", "\U0010ffff", "a" * 128, "a" * 129, "🏧" * 128, "x" * 70_000),
    *("9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2024-02-30T00:00:00Z", "2026-03-01T24:00:00Z", "0229235959"),
    *("2026-03-01T11:59:60Z", "+12026-03-01T11:59:58Z", "2026-03-01T11:59:58+23:59", "1772366398", "epoch", "now"),
)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -0.0, -1, 1e308, 5e-324, 2**63, -(2**63) - 1, 10**30, 0.1 + 0.2),
    *(float("nan"), float("inf"), [], {}, [[]], [None], {"": None}, {"a": {"a": 1}}, ["12.50"], {"amount": "12.50"}),
)

_SCALARS = st.one_of(
    st.text(st.characters(codec=None), max_size=40),  # lone surrogates too
    st.integers(),
    st.floats(),
    st.decimals(allow_nan=False).map(str),
    st.datetimes().map(datetime.isoformat),
)


def odd_values(number: int, count: int = 500) -> list[Any]:
    """Values that Hypothesis thinks of, the same for the same number."""
    values: list[Any] = []

    @seed(number)
    @settings(max_examples=count, database=None, deadline=None)
    @given(_SCALARS)
    def think(value: Any) -> None:
        values.append(value)

    think()
    return values


def records(source: Mapping, odd: Sequence[Any], random: Random, count: int) -> list[Raw]:
    """So many records, each at an offset of its own: a tenth good, a tenth noise, the others good ones gone wrong."""
    values = [*_TEXTS, *_VALUES, *odd]
    return [_record(source, values, random, offset) for offset in range(count)]


def _record(source: Mapping, values: Sequence[Any], random: Random, offset: int) -> Raw:
    fields = _good(source, random, offset)
    value: bytes | None
    draw = random.random()
    if draw < 0.1:
        value = _json(fields)
    elif draw < 0.2:
        value = random.choice(_NOISE)(random)
    else:
        for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
            fields = random.choice(_FIELDWISE)(fields, random.choice(values), random)
        written = _json(fields, escaped=random.random() < 0.5)
        for _ in range(random.choice((0, 0, 1, 1, 3))):
            written = random.choice(_BYTEWISE)(written, random)
        value = written
    raw = Raw(value, partition=random.randrange(7), offset=offset)
    if random.random() < 0.2:
        raw = replace(raw, key=random.choice((None, b"", random.randbytes(20), b"k" * 9000)))
    if random.random() < 0.2:
        raw = replace(raw, timestamp=random.choice(_TIMES))
    if random.random() < 0.2:
        raw = replace(raw, headers=random.choice(_HEADERS))
    return raw


def _good(source: Mapping, random: Random, number: int) -> dict[str, Any]:
    """The fields of a good record of that source."""
    time = NOW - timedelta(seconds=random.randrange(300 * 86_400))
    digits = random.choice(sorted(set(MINOR_DIGITS.values())))
    numeric, currency = random.choice([both for both in ALPHABETIC.items() if MINOR_DIGITS[both[1]] == digits])
    units = random.randrange(-(10 ** random.randrange(1, 14)), 10 ** random.randrange(1, 14))
    country = random.choice(sorted(COUNTRIES))
    if source is JSON:
        whole, part = divmod(abs(units), 10**digits)
        amount = f"{'-' * (units < 0)}{whole}" + f".{part:0{digits}d}" * (digits > 0)
        own = {"txn_id": f"t-{number}", "ts": time.isoformat(), "amount": amount}
        return JSON_FIELDS | own | {"currency": currency, "country": COUNTRIES[country]}
    own = {"de37": f"t-{number}", "de7": f"{time:%m%d%H%M%S}", "de4": f"{abs(units):012d}"}
    return ISO_FIELDS | own | {"mti": "0400" if units < 0 else "0100", "de49": numeric, "de19": country}


def _json(fields: dict[str, Any], escaped: bool = False) -> bytes:
    return json.dumps(fields, ensure_ascii=escaped).encode("utf-8", "surrogatepass")


Fieldwise = Callable[[dict[str, Any], Any, Random], dict[str, Any]]
_FIELDWISE: Sequence[Fieldwise] = (
    *[lambda fields, value, random: fields | {random.choice([*fields]): value}] * 6,
    lambda fields, value, random: {k: v for k, v in fields.items() if k != random.choice([*fields])},
    lambda fields, value, random: fields | {random.choice([*fields]): {"a": value}},
    lambda fields, value, random: fields | {random.choice([*fields]): [value]},
    lambda fields, value, random: fields | {random.choice([*fields]).upper(): value, str(value)[:50]: value},
    lambda fields, value, random: dict(random.sample([*fields.items()], len(fields))),
    lambda fields, value, random: fields | dict.fromkeys(random.sample([*fields], 3), value),
)


def _twice(value: bytes, random: Random) -> bytes:
    """Some of its keys a second time, further in front."""
    return b"{" + value[1 : value.find(b",") + 1] + value[1:]


def _spliced(value: bytes, random: Random) -> bytes:
    at, of = random.randrange(len(value) + 1), random.randrange(len(value) + 1)
    return value[:at] + value[of:]


def _flipped(value: bytes, random: Random) -> bytes:
    if not value:
        return value
    at = random.randrange(len(value))
    return value[:at] + bytes([value[at] ^ 1 << random.randrange(8)]) + value[at + 1 :]


def _inserted(value: bytes, random: Random) -> bytes:
    at = random.randrange(len(value) + 1)
    return value[:at] + random.choice(_PIECES) + value[at:]


_PIECES = (
    *(b"\x00", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", b"\xe2\x80\xa8"),
    *(b'"', b"\\", b"\\u", b"\\ud800", b"\\/", b"\\x41", b"'", b"{", b"}", b"[", b"]", b",", b":", b"\n"),
    *(b"/*", b"//", b"NaN", b"1e999"),
)
Bytewise = Callable[[bytes, Random], bytes]
_BYTEWISE: Sequence[Bytewise] = (
    _twice,
    _spliced,
    *[_flipped] * 4,
    *[_inserted] * 4,
    lambda value, random: value[: random.randrange(len(value) + 1)],
    lambda value, random: value[random.randrange(len(value) + 1) :],
    lambda value, random: value * 2,
    lambda value, random: b"[" + value + b"]",
    lambda value, random: b" \t\r\n" + value + b"\n",
    lambda value, random: b"\xef\xbb\xbf" + value,
    lambda value, random: value.decode("utf-8", "replace").encode(random.choice(("utf-16", "utf-32", "utf-7"))),
    lambda value, random: value.replace(b'": "', b'": ').replace(b'",', b","),
    lambda value, random: b'{"' + random.randbytes(3).hex().encode() + b'":' + value + b"}",
)
_NOISE: Sequence[Callable[[Random], bytes | None]] = (
    lambda random: None,
    lambda random: b"",
    lambda random: random.randbytes(random.randrange(1, 300)),
    lambda random: bytes(random.choices(b'{}[]",:0 \\untrefalse.-+eE', k=random.randrange(1, 200))),
    lambda random: random.choice((b"[", b'{"a":')) * random.randrange(1, 3000),
    lambda random: b"[" * (depth := random.randrange(1, 1500)) + b"]" * depth,
    lambda random: b'{"amount":' + b"9" * random.randrange(1, 3000) + b"}",
    lambda random: random.choice((b"null", b"true", b"0", b'""', b"{}", b"[]", b"[{}]", b"{},{}", b"\x00")),
)
