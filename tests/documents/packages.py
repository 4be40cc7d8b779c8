"""The tree of packages: what each holds, by its docstring, and how large it is."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.documents.page import ROOT, Page, table

NAME = "docs/packages.md"
SOURCES = ("shared/lozenge", "upstream/lozenge_upstream", "downstream/lozenge_downstream", "deploy/lozenge_deploy")
TOLERANCE = 0.1
"""A figure of lines stays as it is written while it is nearer to the code than this."""


def tree() -> str:
    """A row for each package, those within it below it."""
    written = dict(_written((ROOT / NAME).read_text("utf-8")))
    rows = [_row(folder, written) for source in SOURCES for folder in _packages(ROOT / source)]
    return table(("package", "holds", "modules", "lines"), rows)


def _packages(folder: Path) -> Iterator[Path]:
    yield folder
    for below in sorted(folder.iterdir()):
        if (below / "__init__.py").exists():
            yield from _packages(below)


def _row(folder: Path, written: dict[str, int]) -> tuple[str, str, str, str]:
    name = dotted(folder)
    modules = [file for file in folder.rglob("*.py") if (file.parent / "__init__.py").exists()]
    lines = sum(len(file.read_text("utf-8").splitlines()) for file in modules)
    count = sum(file.name != "__init__.py" for file in modules)
    return f"`{name}`", first_line(folder / "__init__.py"), str(count), f"{stable(lines, written.get(name)):,}"


def dotted(folder: Path) -> str:
    """The name by which a package is imported."""
    source = next(ROOT / source for source in SOURCES if folder.is_relative_to(ROOT / source))
    return ".".join(folder.relative_to(source.parent).parts)


def first_line(file: Path) -> str:
    """The first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "").partition("\n")[0]


def stable(lines: int, written: int | None) -> int:
    """The figure to write: the one that is written already if it is near enough, else to the next ten."""
    if written is not None and abs(lines - written) <= TOLERANCE * lines:
        return written
    return round(lines, -1)


def _written(page: str) -> Iterator[tuple[str, int]]:
    for name, lines in re.findall(r"^\| `([a-z_.]+)` \|.*\| ([0-9,]+) \|$", page, re.MULTILINE):
        yield name, int(lines.replace(",", ""))


PAGE = Page(NAME, tree)
