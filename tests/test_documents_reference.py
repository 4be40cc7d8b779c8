"""The generated parts of `docs/` are what the code says, and leave nothing without a word."""

import difflib

import pytest

import lozenge
import lozenge.testing
from tests.documents import packages, python_api, settings
from tests.documents.__main__ import PAGES
from tests.documents.declared_fields import declared_fields
from tests.documents.page import ROOT, Page

SETTINGS = [*settings.TABLES.values(), *settings.SETTINGS.values()]
NAMES = [(module, name) for module in (lozenge, lozenge.testing) for name in module.__all__]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_generated_from_the_code(page: Page) -> None:
    committed, generated = page.committed(), page.current()
    difference = difflib.unified_diff(
        committed.splitlines(), generated.splitlines(), page.name, "the code", lineterm="", n=1
    )
    assert committed == generated, "\n".join([*difference, "", f"Run `make docs` and commit {page.name}."])


def test_every_page_of_the_reference_is_generated_and_linked() -> None:
    index = (ROOT / "docs" / "reference" / "README.md").read_text("utf-8")
    generated = {page.path.name for page in PAGES if page.path.parent.name == "reference"}
    present = {path.name for path in (ROOT / "docs" / "reference").glob("*.md")} - {"README.md"}
    assert present == generated
    assert [name for name in sorted(present) if f"({name})" not in index] == []


@pytest.mark.parametrize("model", SETTINGS, ids=lambda model: model.__name__)
def test_every_key_and_variable_says_what_it_means(model: type) -> None:
    assert [field.name for field in declared_fields(model) if not (field.text or field.name == "model_config")] == []


@pytest.mark.parametrize(("module", "name"), NAMES, ids=lambda value: getattr(value, "__name__", value))
def test_every_name_of_the_python_api_says_what_it_is(module: object, name: str) -> None:
    value = getattr(module, name)
    text = value.__doc__ if callable(value) else python_api.variable_text(module, name)  # type: ignore[arg-type]
    assert text
    assert f"### `{name}`" in python_api.reference()


@pytest.mark.parametrize(
    ("lines", "written", "figure"),
    [(1_000, None, 1_000), (1_047, 1_000, 1_000), (1_234, 1_000, 1_230), (904, 1_000, 900)],
)
def test_a_figure_of_lines_changes_only_when_it_is_far_from_the_code(
    lines: int, written: int | None, figure: int
) -> None:
    assert packages.stable(lines, written) == figure


@pytest.mark.parametrize("source", packages.SOURCES)
def test_every_package_is_in_the_tree_and_says_what_it_holds(source: str) -> None:
    tree = packages.tree()
    for file in (ROOT / source).rglob("__init__.py"):
        assert packages.first_line(file).endswith((".", ":")), f"{file}: its docstring begins with no sentence"
        assert f"| `{packages.dotted(file.parent)}` |" in tree
