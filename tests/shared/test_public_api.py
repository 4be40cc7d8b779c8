"""The names that detectors are written with are a contract: what is added or removed here is a release note."""

import ast
import importlib
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import lozenge

NAMES = [
    "Alert",
    "Detector",
    "Duration",
    "Event",
    "Fold",
    "Settings",
    "State",
    "Tables",
    "Timer",
    "alert",
    "fold",
    "listed",
    "money",
    "money_column",
]


def test_the_public_names_are_these() -> None:
    assert lozenge.__all__ == NAMES, "if this is meant, change the list here and the changelog with it"


def test_the_public_names_are_sorted() -> None:
    assert sorted(NAMES) == NAMES


@pytest.mark.parametrize("module", ["lozenge", "lozenge.testing"])
def test_every_public_name_is_there(module: str) -> None:
    package = importlib.import_module(module)
    assert not [name for name in package.__all__ if not hasattr(package, name)]


@pytest.mark.parametrize("module", ["lozenge", "lozenge.testing"])
def test_every_public_name_is_documented(module: str) -> None:
    package = importlib.import_module(module)
    assert not [name for name in package.__all__ if not documented(name, getattr(package, name))]


def documented(name: str, value: Any) -> bool:
    """Whether a class or a function has a docstring, or the assignment of another value is followed by one."""
    if str(getattr(value, "__module__", "")).startswith("lozenge."):
        return bool(value.__doc__)
    bodies = [ast.parse(file.read_text("utf-8")).body for file in Path(lozenge.__file__).parent.rglob("*.py")]
    return any(
        isinstance(node, ast.Assign)
        and name in {target.id for target in node.targets if isinstance(target, ast.Name)}
        and isinstance(after, ast.Expr)
        for body in bodies
        for node, after in pairwise(body)
    )


def test_importing_the_public_names_does_not_import_spark() -> None:
    code = "import lozenge, sys; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0, "import pyspark inside functions"
