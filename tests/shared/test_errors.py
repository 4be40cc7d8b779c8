"""The tree of errors is drawn once, for all packages, and the drawing is true."""

import ast
import re
from pathlib import Path

import pytest

from lozenge import errors
from lozenge.errors import first_line

ROOT = Path(__file__).parents[2]


def drawn() -> dict[str, str]:
    """Each error in the drawing and the one above it."""
    above: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        if name := re.match(r"(?: {4}(?=LozengeError$)|[ │]*[├└]── )(\w+)", line):
            path = [step for step in path if step[0] < name.start(1)]
            if path:
                above[name[1]] = path[-1][1]
            path.append((name.start(1), name[1]))
    return above


def defined() -> dict[str, str]:
    """Each class of ours that descends from LozengeError and its base."""
    classes = {
        node.name: ast.unparse(base).split(".")[-1]
        for package in ("shared", "upstream", "downstream", "deploy")
        for file in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
        for base in node.bases[:1]
    }

    def descends(name: str) -> bool:
        base = classes.get(name)
        return base == "LozengeError" or (base is not None and descends(base))

    return {name: base for name, base in classes.items() if descends(name)}


def test_the_drawn_tree_of_errors_is_the_one_in_the_code() -> None:
    assert drawn() == defined(), "draw new errors in the docstring of lozenge/errors.py"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "ValueError"),
        ("\n no column x \n plan", "no column x"),
        ("An error occurred while calling o1.get.", "An error occurred while calling o1.get."),
        ("An error occurred while calling o1.get.\n: a.B: full\n\tat C.d(C.java:1)", "a.B: full"),
        ("An error occurred while calling o1.get.\n: a.B: x\n\tat C\nCaused by: e.F: y\nCaused by: g.H: z", "g.H: z"),
    ],
)
def test_the_first_line_of_an_error_is_what_went_wrong(text: str, line: str) -> None:
    assert first_line(ValueError(text)) == line
