"""What nested values of raw records suggest: records, arrays and maps; and what is not mapped, with the reason."""

from collections.abc import Sequence
from typing import Any

import pytest

from lozenge_upstream.stream_draft.field_guess import FieldGuess
from lozenge_upstream.stream_draft.nested_guess import MOST_LEVELS, Said, guess_fields, labels, with_type_names

CARD = "4000000000000002"


def guessed(*values: Any, types: dict[str, str] | None = None) -> FieldGuess:
    """The field for these values of one name, one in each record."""
    records = [{} if value is ... else {"it": value} for value in values]
    [field] = with_type_names(guess_fields(records, Said(types or {})), "Root")
    return field


def shape(field: FieldGuess) -> Any:
    """The type of a field in few words: a record is a dictionary, an array a list, a map one of the name `*`."""
    if field.transform is None:
        return None
    found: Any = field.kind
    if field.kind == "record":
        found = {part.name: shape(part) for part in field.parts if part.transform is not None}
    elif field.parts:
        element = shape(field.parts[0])
        found = [element] if field.kind == "array" else {"*": element}
    return ("optional", found) if field.optional else found


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([{"os": "x", "v": 1}], {"os": "string", "v": "long"}),
        ([{"os": "x"}, {"os": "y", "v": None}, {"os": "z", "v": 2}], {"os": "string", "v": ("optional", "long")}),
        ([{"os": "x"}, None, {}], ("optional", {"os": "string"})),
        ([{"os": "x"}, ..., {"os": " "}], ("optional", {"os": "string"})),
        ([{"a": {"b": {"c": True}}}], {"a": {"b": {"c": "boolean"}}}),
        ([["a"], []], ["string"]),
        ([["a"], None], ("optional", ["string"])),
        ([["a", 1]], ["string"]),
        ([[{"sku": "a", "n": 1}, {"sku": "b"}], []], [{"sku": "string", "n": ("optional", "long")}]),
        ([[{"sizes": [1], "card": CARD}]], [{"sizes": ["long"], "card": "token"}]),
        ([[[1], [2, 3]]], [["long"]]),
        ([{"17": 1, "18": 2}], {"*": "long"}),
        ([{"u-17": {"n": 1}, "u-18": {}}, {}], {"*": {"n": ("optional", "long")}}),
        ([{"ann@x.org": "a"}, None], ("optional", {"*": "string"})),
        ([{f"n{chr(97 + at)}": at} for at in range(7)], {"*": "long"}),
        ([{"line1": "a", "line2": "b"}], {"line1": "string", "line2": "string"}),
    ],
)
def test_nested_values_suggest_records_arrays_and_maps(values: list[Any], expected: Any) -> None:
    assert shape(guessed(*values)) == expected


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([{}], "it has a value in no record"),
        ([[], []], "its lists are empty"),
        ([["a", None]], "some of its elements are null or blank"),
        ([["a", {"b": 1}]], "its elements have different types: object, value"),
        ([[True, "a"]], "nothing in it is"),
        ([{"a": 1}, 5], "different records have different types there: object, value"),
        ([{"17": 1, "18": [2]}], "its elements have different types: list, value"),
        ([{"17": None}, {"18": 1}], "some of its elements are null or blank"),
        ([{'a"b': 1}], "nothing in it is"),
        ([[[]]], "nothing in it is"),
    ],
)
def test_what_is_not_mapped_says_why(values: list[Any], reason: str) -> None:
    found = guessed(*values)
    assert (found.transform, found.all_notes[0]) == (None, f"it is not mapped: {reason}")


def test_what_cannot_be_mapped_within_does_not_take_the_rest_along() -> None:
    found = guessed({"good": 1, "mixed": [1, {}], "none": []}, {"good": 2, "mixed": [], "none": []})
    assert shape(found) == {"good": "long"}
    assert list(found.all_notes) == [
        "it.mixed is not mapped: its elements have different types: object, value",
        "it.none is not mapped: its lists are empty",
    ]


def test_levels_have_an_end_that_is_said() -> None:
    value: Any = 1
    for _ in range(MOST_LEVELS + 3):
        value = {"a": value, "b": 1}
    found = guessed(value)
    assert f"it is more than {MOST_LEVELS} levels deep" in " ".join(found.all_notes)
    depth, inner = 1, shape(found)
    while isinstance(inner, dict) and "a" in inner:
        depth, inner = depth + 1, inner["a"]
    assert (depth, inner) == (MOST_LEVELS - 1, {"b": "long"})


def test_paths_in_a_record_begin_at_the_top_and_in_a_list_at_its_element() -> None:
    found = guessed({"a b": {"c.d": 1}, "items": [{"e": {"f": [2]}}]})
    assert found.transform is not None
    fields = found.transform["fields"]
    assert fields["a_b"]["fields"]["c_d"]["path"] == 'it.a b."c.d"'
    assert (fields["items"]["path"], fields["items"]["of"]["fields"]["e"]["fields"]["f"]) == (
        "it.items",
        {"transform": "list", "path": "e.f", "of": {"transform": "number", "path": "."}},
    )


def test_each_record_and_enum_has_a_type_name_of_its_own() -> None:
    types = {"it.s": "enum", "it.more[].s": "enum", "it.a_1.s": "enum", "it.a1.s": "enum"}
    found = guessed({"s": "x", "more": [{"s": "y"}], "a_1": {"s": "z"}, "a1": {"s": "z"}}, types=types)
    assert [*names(found.type)] == [
        *("RootIt", "It_SValue", "RootIt_More", "It_More_SValue", "RootIt_A1", "It_A1_SValue"),
        *("RootIt_A1_2", "It_A1_SValue_2"),
    ]


def names(avro: Any) -> Sequence[str]:
    if isinstance(avro, list):
        return [name for each in avro for name in names(each)]
    if not isinstance(avro, dict):
        return []
    own = [avro["name"]] if avro.get("type") in ("record", "enum") else []
    return [*own, *(name for part in ("type", "fields", "items", "values") for name in names(avro.get(part)))]


def test_a_person_names_what_is_within_by_its_label() -> None:
    value = {"items": [{"price": 1.5}], "by": {"17": 2}}
    assert {"it.items", "it.items[].price", "it.by.*"} <= {*labels({"it": value})}
    found = guessed(value, types={"it.items[].price": "decimal", "it.by.*": "string"})
    assert shape(found) == {"items": [{"price": "decimal"}], "by": {"*": "string"}}


def test_tokens_are_named_by_the_names_that_lead_there() -> None:
    found = guessed({"card": CARD, "more": [{"card": CARD}], "by": {"1": {"card": CARD}}})
    assert [name for name, leaf in found.leaves() if leaf.kind == "token"] == [
        *("it.card", "it.more.card", "it.by.card")
    ]
