"""What the views of records make of a record, whatever bytes it has."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lozenge.contracts import schemas
from lozenge.contracts.avro import Codec
from lozenge.contracts.display_text import shown_data
from lozenge.contracts.schemas import newest
from lozenge.nesting import MOST_NESTED
from lozenge_deploy.cli.printing.terminal import json_text
from lozenge_deploy.observe.record_view import decoded, shown_headers, text
from tests.json_values import SCALARS, nested

VERDICT = {
    "alert_id": "a1",
    "detector": "large_amount",
    "release": "r1",
    "entity": "card:card-7",
    "verdict": "snooze",
    "author": "ann",
    "note": "called them",
    "at": datetime(2026, 3, 1, 12, tzinfo=UTC),
    "snoozed_until": datetime(2026, 3, 8, 12, tzinfo=UTC),
}
SHOWN = VERDICT | {"at": "2026-03-01T12:00:00+00:00", "snoozed_until": "2026-03-08T12:00:00+00:00"}


def test_a_verdict_is_shown_as_data() -> None:
    assert decoded(Codec.of("feedback").encode(VERDICT)) == SHOWN


def test_an_assigned_id_comes_before_the_same_id_of_the_lock_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "_assigned", {newest("feedback").identity: newest("alert").id})
    assert decoded(Codec.of("feedback").encode(VERDICT)) == SHOWN


@pytest.mark.parametrize("value", [b"\x00", b"\x00\x00\x00\x00\x63rest"])
def test_what_no_schema_decodes_is_shown_in_hex(value: bytes) -> None:
    assert decoded(value) == value.hex()


@pytest.mark.parametrize(
    "value",
    [
        b"[" * 5000 + b"]" * 5000,
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
        b"[" * 900 + b"]" * 900,
        b"[" * 5000,
        b'{"amount":' + b"9" * 5000 + b"}",
        b"not JSON",
        b"",
    ],
    ids=["lists", "objects", "lists that Python reads", "no end", "thousands of digits", "text", "nothing"],
)
def test_json_that_is_nested_too_deeply_or_that_python_cannot_read_is_shown_as_its_text(value: bytes) -> None:
    assert decoded(value) == value.decode()


def test_a_tombstone_an_empty_value_and_the_json_null_are_distinguished() -> None:
    assert (decoded(None), decoded(b""), decoded(b"null"), decoded(b"[null]")) == (None, "", "null", [None])


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        ("23958446825181076828", 23958446825181076828),
        ("0.1", 0.1),
        ("1e2", 100.0),
        ("12345678901234567.89", "12345678901234567.89"),
        ("0.12345678901234567891", "0.12345678901234567891"),
        ("1e400", "1e400"),
        ("1e-400", "1e-400"),
        ("1e99999999999999999999", "1e99999999999999999999"),
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
    ],
)
def test_no_digit_of_a_number_is_lost(number: str, shown: object) -> None:
    found = decoded(f'{{"amount": {number}}}'.encode())
    assert found == {"amount": shown}
    assert isinstance(found["amount"], type(shown))


def test_json_that_has_a_name_twice_is_shown_as_its_text() -> None:
    value = b'{"amount": 1, "x": {"amount": 2, "amount": 3}}'
    assert decoded(value) == value.decode()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_json_in_another_encoding_does_not_look_as_if_it_could_be_read(encoding: str) -> None:
    value = '{"amount": 1}'.encode(encoding)
    assert decoded(value) in (value.hex(), value.decode("latin-1"))
    assert decoded(b'\xef\xbb\xbf{"amount": 1}') == '\ufeff{"amount": 1}'


def test_headers_that_come_several_times_are_all_shown() -> None:
    headers = [("retry", b"1"), ("a", b"x"), ("retry", b"2"), ("retry", None)]
    assert shown_headers(headers) == {"retry": ["1", "2", None], "a": "x"}


def test_a_value_with_as_many_levels_as_are_shown_is_data() -> None:
    value = "[" * MOST_NESTED + "]" * MOST_NESTED
    assert decoded(value.encode()) == json.loads(value)
    assert decoded(f"[{value}]".encode()) == f"[{value}]"


@pytest.mark.parametrize("value", [b"\xff\xfe\x00", b"\xc3", b"caf\xe9", b"\x9b2J"])
def test_bytes_that_are_no_text_are_shown_in_hex(value: bytes) -> None:
    assert decoded(value) == text(value) == value.hex()


PAN, HIDDEN = "4000000000000002", "400000******0002"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (PAN.encode(), HIDDEN),
        (f'"{PAN}"'.encode(), HIDDEN),
        (f'{{"pan": "{PAN}", "{PAN}": [{PAN}, {{"x": {PAN}.0}}], "n": 12, "b": true}}'.encode(), None),
        (b'"\\u0034000000000000002"', HIDDEN),
        (f"[{PAN}".encode(), f"[{HIDDEN}"),
        (f"{'[' * 5000}{PAN}".encode(), f"{'[' * 5000}{HIDDEN}"),
        (f"caf\xe9 {PAN}".encode("latin-1"), f"caf\xe9 {HIDDEN}".encode("latin-1").hex()),
        (b"\x00\x00\x00\x00\x63" + PAN.encode(), (b"\x00\x00\x00\x00\x63" + HIDDEN.encode()).hex()),
        (Codec.of("feedback").encode(VERDICT | {"note": f"card {PAN}"}), SHOWN | {"note": f"card {HIDDEN}"}),
    ],
)
def test_card_numbers_are_masked_whatever_bytes_they_are_in(value: bytes, shown: object) -> None:
    found = decoded(value)
    assert PAN not in json.dumps(found)
    assert PAN.encode().hex() not in json.dumps(found)
    if shown is None:
        shown = {"pan": HIDDEN, HIDDEN: [HIDDEN, {"x": f"{HIDDEN}.0"}], "n": 12, "b": True}
    assert found == shown
    assert decoded(value, card_numbers=True) != found


def test_card_numbers_in_keys_and_headers_are_masked() -> None:
    assert text(PAN.encode()) == text(PAN) == HIDDEN
    assert shown_headers([(PAN, PAN.encode()), ("h", None)]) == {HIDDEN: HIDDEN, "h": None}
    assert shown_headers({"pan": PAN}, card_numbers=True) == {"pan": PAN}
    assert text(PAN.encode(), card_numbers=True) == PAN


_JSON = nested(SCALARS | st.floats(allow_nan=False, allow_infinity=False), 15)
_BYTES = st.binary(max_size=60) | st.text().map(lambda text: text.encode("utf-8", "surrogatepass"))


@given(_BYTES | _JSON.map(lambda value: json.dumps(value).encode()))
def test_a_record_of_any_bytes_is_shown_as_data_that_prints_without_control_characters(value: bytes) -> None:
    printed = json_text(decoded(value))
    assert json.loads(printed) == json.loads(printed.encode())
    assert printed.isprintable()


@given(_JSON, st.integers(0, 2 * MOST_NESTED), st.sampled_from(["[]", "{}"]))
def test_json_of_any_depth_is_shown_as_data_or_as_its_text(value: Any, levels: int, around: str) -> None:
    for _ in range(levels):
        value = [value] if around == "[]" else {"a": value}
    written = json.dumps(value)
    shown = decoded(written.encode())
    assert shown in (shown_data(value), shown_data(written))
    assert levels <= MOST_NESTED or shown == shown_data(written)
