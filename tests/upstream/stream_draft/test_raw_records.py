"""Records are read however JSON is usually kept in a file, and each of their fields has a path of a mapping."""

import pytest

from lozenge.errors import UsageError
from lozenge_upstream.normalise.declarations import steps
from lozenge_upstream.stream_draft.raw_records import observed, path_of, records_in

ONE, TWO = '{"a": 1}', '{"a": {"b": 2.50}}'


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        (ONE, [ONE]),
        (f"{ONE}\n{TWO}\n", [ONE, TWO]),
        (f"\ufeff[{ONE},\n {TWO}]", [ONE, TWO]),
        ('{\n "a": 1\n}\n{\n "a": 2\n}', ['{\n "a": 1\n}', '{\n "a": 2\n}']),
        ('{"a": [1, {"b": "]"}]}', ['{"a": [1, {"b": "]"}]}']),
    ],
)
def test_lines_an_array_and_one_object_are_read(content: str, texts: list[str]) -> None:
    assert [record.text for record in records_in(content.encode())] == texts


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "there are none"),
        (b"[]", "there are none"),
        (b'{"a": 1}\n{"a": ', "record 2 is no JSON"),
        (b"[1]", "record 1 is no JSON object, but 1"),
        (b'{"a": NaN}', "NaN is no number of JSON"),
        (b'{"a": "\xff"}', "not UTF-8: line 1 has the byte 0xff"),
        (b'{"a":' * 100_000, "record 1 is no JSON: it is nested too deeply"),
        (b"{}\n" + b'{"a":' * 200 + b"1" + b"}" * 200, "line 2: record 2 has more than"),
        (b'{}\n"4000000000000002"', 'line 2: record 2 is no JSON object, but "400000'),
    ],
)
def test_what_is_no_record_is_named_by_its_number(content: bytes, problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as caught:
        records_in(content)
    assert "JSON objects" in caught.value.hint


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        (
            '{"a": 1}\n{"a": \noops\n\n{"a": 2}\n[3]\n{"a": NaN}',
            [
                "line 2: record 2 is no JSON: Expecting value in line 2, column 7",
                "line 3: record 3 is no JSON: Expecting value in line 3, column 1",
                "line 6: record 5 is no JSON object, but [3]",
                "line 7: record 6 is no JSON: NaN is no number of JSON",
            ],
        ),
        (
            '\n[\n{\n "a": 1,\n "b"\n},\n{\n "a": 2\n},\n{\n "c": x\n}\n]',
            [
                "line 3: record 1 is no JSON: Expecting ':' delimiter in line 6, column 1",
                "line 10: record 3 is no JSON: Expecting value in line 11, column 7",
            ],
        ),
        ("\n".join(["{}", *["x"] * 12]), [*(f"line {n}: record {n} is no JSON" for n in range(2, 12)), "and 2 more"]),
    ],
)
def test_each_record_that_is_none_is_named_with_its_line(content: str, problems: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        records_in(content.encode())
    _, *found = caught.value.message.splitlines()
    assert len(found) == len(problems)
    assert all(problem in said for said, problem in zip(found, problems, strict=True)), found


@pytest.mark.parametrize(
    "names", [("a", "b"), ("a.b",), ("x[0]", "y"), ("$", "/"), ("Errors?", "Use Chip"), ("größe",)]
)
def test_a_path_leads_to_the_names_that_it_is_made_of(names: tuple[str, ...]) -> None:
    path = path_of(names)
    assert path is not None
    assert steps(path) == names


def test_a_name_that_no_path_can_have_has_none() -> None:
    assert path_of(('a"b',)) is None
    assert path_of(("a", "")) is None


def test_null_and_blank_are_no_values_and_lists_are_no_objects() -> None:
    records = records_in(b'{"a": null, "b": " ", "c": {"d": true}, "e": [1], "f": 0}{"a": 1, "c": "x"}')
    found = observed(records)
    assert {path: of.values for path, of in found.items()} == {
        "a": [1],
        "b": [],
        "c": ["x"],
        "c.d": [True],
        "e": [],
        "f": [0],
    }
    assert {path: of.kinds for path, of in found.items()} == {
        "a": {"value"},
        "b": set(),
        "c": {"object", "value"},
        "c.d": {"value"},
        "e": {"list"},
        "f": {"value"},
    }
