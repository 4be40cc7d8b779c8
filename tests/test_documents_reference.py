"""The generated parts of `docs/` are what the code says, and leave nothing without a word."""

import difflib

import pytest

import lozenge
import lozenge.testing
from tests.documents import python_api, settings
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
