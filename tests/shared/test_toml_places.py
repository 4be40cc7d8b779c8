"""Every name and element of a TOML file has its line, and a problem of the file names it."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lozenge.toml_places import Place, Problem, TomlPlaces, spelled

ROOT = Path(__file__).parents[2]
FILES = sorted(file for top in ("upstream", "detectors", "examples", "shared") for file in (ROOT / top).rglob("*.toml"))
TEXT = """\
a.b = 1 # c.d = 2
"x.y" = { p = [1, 2], "q r" = "]" }
s = '''
[no.header]
''' # more
list = [
    "#", # one
    { k = \"\"\"
\\\"""\"\"\" },
    [3.5, 2026-03-01T12:00:00Z],
]

[[skip]]
name = 'n'
[skip.inner]
z = true
[[skip]]
name = "=]"

[a.deep.er]
v = 1
"""


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    if at:
        yield at
    if isinstance(value, dict | list):
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(part, (*at, name))


def test_each_place_has_the_line_where_it_is_first_named() -> None:
    assert TomlPlaces.of(TEXT).lines == {
        ("a",): 1,
        ("a", "b"): 1,
        ("x.y",): 2,
        ("x.y", "p"): 2,
        ("x.y", "p", 0): 2,
        ("x.y", "p", 1): 2,
        ("x.y", "q r"): 2,
        ("s",): 3,
        ("list",): 6,
        ("list", 0): 7,
        ("list", 1): 8,
        ("list", 1, "k"): 8,
        ("list", 2): 10,
        ("list", 2, 0): 10,
        ("list", 2, 1): 10,
        ("skip",): 13,
        ("skip", 0): 13,
        ("skip", 0, "name"): 14,
        ("skip", 0, "inner"): 15,
        ("skip", 0, "inner", "z"): 16,
        ("skip", 1): 17,
        ("skip", 1, "name"): 18,
        ("a", "deep"): 20,
        ("a", "deep", "er"): 20,
        ("a", "deep", "er", "v"): 21,
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_the_files_of_the_project_have_the_places_that_toml_reads(file: Path) -> None:
    text = file.read_text("utf-8")
    found, lines = TomlPlaces.of(text), text.splitlines()
    assert {*found.lines} == {*places(tomllib.loads(text))}
    for place, line in found.lines.items():
        assert not isinstance(place[-1], str) or place[-1] in lines[line - 1]


def test_a_problem_names_what_the_file_has_and_not_what_a_validator_adds() -> None:
    found = TomlPlaces.of(TEXT)
    assert found.known(("skip", 0, "a type", "inner", "another", "z")) == ("skip", 0, "inner", "z")
    assert found.said("x.toml", Problem(("skip", 1, "function-after[]", "name"), "it is long")) == (
        "x.toml line 18: skip 2.name: it is long"
    )
    assert found.said("x.toml", Problem(("skip", 1, "when"), "it is missing")) == (
        "x.toml line 17: skip 2.when: it is missing"
    )
    assert found.said("x.toml", Problem(("owner",), "it is missing")) == "x.toml: owner: it is missing"
    assert found.said("x.toml", Problem((), "it is empty")) == "x.toml: it is empty"


def test_an_index_counts_from_one_for_people() -> None:
    assert spelled(("fields", "channel", "of", 0, "when", 1)) == "fields.channel.of 1.when 2"
