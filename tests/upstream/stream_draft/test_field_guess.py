"""What the values of a raw field say that it is, and what a person may say instead."""

from decimal import Decimal
from typing import Any

import pytest

from lozenge.errors import UsageError
from lozenge_upstream.stream_draft.field_guess import as_key, as_plain, field_name, guess, guess_element
from lozenge_upstream.stream_draft.raw_records import ObservedField

CARD = "4000000000000002"


def guessed(values: list[Any], name: str = "value", **how: str) -> Any:
    return guess(name, ObservedField((name,), values, [], {"value"}), False, **how)


@pytest.mark.parametrize(
    ("values", "kind", "transform"),
    [
        (["a", "b"], "string", "text"),
        (["00123"], "string", "text"),
        ([1, "x"], "string", "text"),
        ([2**63], "string", "text"),
        ([1, -2], "long", "number"),
        ([1, Decimal("2.5")], "double", "number"),
        (["12.50", "3.125"], "decimal", "number"),
        (["12", "3.5"], "string", "text"),
        ([True, False], "boolean", "boolean"),
        (["true", "false"], "boolean", "boolean"),
        (["2026-03-01T12:00:00Z", "2026-03-01 12:00:00.5+01:00"], "timestamp", "timestamp_iso"),
        (["2026-03-01T12:00:00"], "string", "text"),
        (["2026-03-01"], "string", "text"),
        ([1772366400123], "long", "number"),
        ([CARD], "token", "token"),
        ([int(CARD)], "token", "token"),
        ([CARD, "4000000000000003"], "string", "text"),
    ],
)
def test_the_values_of_a_field_suggest_its_type(values: list[Any], kind: str, transform: str) -> None:
    found = guessed(values)
    assert (found.kind, found.transform["transform"]) == (kind, transform)


@pytest.mark.parametrize(
    ("name", "value", "unit"),
    [
        ("created_at", 1772366400, "s"),
        ("ts", 1772366400123, "ms"),
        ("eventTime", 1772366400123456, "us"),
        ("timestamp_ns", 1772366400123456789, "ns"),
        ("time", Decimal("1772366400.5"), "s"),
    ],
)
def test_a_number_is_a_time_where_its_name_says_so_and_it_lies_in_these_years(name: str, value: Any, unit: str) -> None:
    assert guessed([value], name).transform == {"transform": "timestamp_epoch", "path": name, "unit": unit}
    assert guessed([value, 7], name).kind in ("long", "double")


def test_a_time_without_an_offset_is_one_where_the_zone_is_given() -> None:
    berlin = guessed(["2026-03-01 12:00"], zone="Europe/Berlin").transform
    assert berlin == {"transform": "timestamp_iso", "path": "value", "zone": "Europe/Berlin"}
    assert guessed(["2026-03-01 12:00"], zone="UTC").transform["offset_default"] == "Z"
    assert guessed(["2026-03-01 12:00"], zone="+02:00").transform["offset_default"] == "+02:00"
    assert "zone" not in guessed(["2026-03-01 12:00Z"], zone="Europe/Berlin").transform


@pytest.mark.parametrize("text", ["27.11.2026", "11/27/2026 08:00:00", "2026/11/27", "1-2-2026"])
def test_a_text_that_looks_like_a_date_has_a_note(text: str) -> None:
    assert "docs/mappings.md has transforms" in "".join(guessed([text]).notes)
    assert not guessed([text, "soon"]).notes
    assert not guessed(["10.20.30.40"]).notes


def test_a_decimal_has_the_places_of_its_texts() -> None:
    assert guessed(["12.5"]).type == {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 2}
    assert guessed(["1.12345"]).type["scale"] == 5
    assert guessed(["1" * 20 + ".5"]).type["precision"] == 38


@pytest.mark.parametrize(
    ("values", "kind", "made"),
    [
        ([1, 2], "string", "string"),
        (["1", "2"], "long", "long"),
        ([1, 2], "double", "double"),
        ([1, Decimal("2.5")], "decimal", "decimal"),
        ([1772366400], "timestamp", "timestamp"),
        ([CARD], "string", "string"),
    ],
)
def test_a_person_may_say_what_a_field_is(values: list[Any], kind: str, made: str) -> None:
    assert guessed(values, kind=kind).kind == made


@pytest.mark.parametrize(
    ("values", "kind"), [(["x"], "long"), ([1.5], "boolean"), (["soon"], "timestamp"), (["a b", "a-b"], "enum")]
)
def test_what_a_field_cannot_be_is_an_error_with_its_values(values: list[Any], kind: str) -> None:
    with pytest.raises(UsageError, match=f"value is no {kind}: it has {values[0]}"):
        guessed(values, kind=kind)


def test_an_enum_has_the_values_of_the_records_as_symbols() -> None:
    found = guessed(["in use", "idle", "3rd", "idle"], "state", kind="enum")
    assert found.type == {"type": "enum", "name": "StateValue", "symbols": ["_3rd", "idle", "in_use"]}
    assert found.transform["table"] == {"3rd": "_3rd", "idle": "idle", "in use": "in_use"}


@pytest.mark.parametrize(
    ("steps", "name"),
    [
        (("userId",), "user_id"),
        (("device", "osVersion"), "device_os_version"),
        (("Errors?",), "errors"),
        (("HTTPStatus",), "http_status"),
        (("3d",), "field_3d"),
        (("größe",), "gr_e"),
        (("$oid",), "oid"),
        (("class",), "class_"),
        (("stream",), "source_stream"),
        (("?",), "field"),
    ],
)
def test_a_field_has_a_name_that_python_and_avro_take(steps: tuple[str, ...], name: str) -> None:
    assert field_name(steps) == name


def test_a_key_is_a_text_and_a_token_stays_one() -> None:
    assert as_key(guessed([17]), [17]).kind == "string"
    assert as_key(guessed([CARD]), [CARD]).kind == "token"


def test_a_time_that_is_none_after_all_is_the_number_or_text_that_it_also_is() -> None:
    assert as_plain(guessed([1772366400], "ts"), [1772366400]).kind == "long"
    assert as_plain(guessed(["2026-03-01T12:00:00Z"]), ["2026-03-01T12:00:00Z"]).kind == "string"


def test_a_field_without_values_and_one_of_several_types_are_not_mapped() -> None:
    assert guessed([]).transform is None
    assert guessed([True, 1]).transform is None
    assert "not mapped" in guessed([True, 1]).notes[0]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a"], "string"),
        ([1, 2, 3], "long"),
        ([1, Decimal("2.5")], "double"),
        ([True], "boolean"),
        (["2026-03-01T12:00:00Z"], "string"),
        ([CARD], "string"),
        (["a", 1], "string"),
    ],
)
def test_elements_have_a_plain_type(values: list[Any], kind: str) -> None:
    found = guess_element("tags", values, "tags[]")
    assert (found.kind, found.path, found.notes) == (kind, ".", ())


def test_elements_of_several_types_are_not_mapped_and_a_person_may_say_their_type() -> None:
    assert guess_element("tags", [True, "a"], "tags[]").transform is None
    assert guess_element("sums", ["1.5"], "sums[]", kind="double").kind == "double"
    with pytest.raises(UsageError, match=r"tags\[\] is no long: it has a"):
        guess_element("tags", ["a"], "tags[]", kind="long")
