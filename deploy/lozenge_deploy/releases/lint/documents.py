"""What a reader of a folder finds: its README, the docstring of its main module, its tests."""

import ast
from collections.abc import Iterator
from pathlib import Path

from lozenge.detector.manifest import Manifest
from lozenge_deploy.releases.lint.files import parsed, text_of
from lozenge_deploy.releases.lint.sources import settings_of

SECTIONS = ("Owner", "What fires", "What it misses", "Known false positives", "Settings", "Runbook")
REQUIRED_TESTS = ("test_fires", "test_stays_silent")
KINDS_OF_TEST = (*REQUIRED_TESTS, "test_a_missing")


def document_problems(folder: Path, description: object, declaration: Manifest) -> Iterator[str]:
    """What a reviewer would miss in the folder."""
    name = folder.name
    tree = parsed(folder / f"{name}.py")
    if isinstance(tree, ast.Module) and "misses" not in (ast.get_docstring(tree) or ""):
        yield f"{name}.py: say in its docstring what fires and what it misses"
    yield from _readme(folder, str(description or ""), declaration)
    tests = parsed(folder / f"test_{name}.py")
    if isinstance(tests, ast.Module):
        yield from (f"test_{name}.py: {problem}" for problem in _tests(tests))
    elif tests == "missing":
        yield f"test_{name}.py: missing"


def _readme(folder: Path, description: str, declaration: Manifest) -> Iterator[str]:
    sections = ", ".join(f"## {section}" for section in SECTIONS)
    try:
        text = text_of(folder / "README.md")
    except FileNotFoundError:
        yield f"README.md: missing; write # {folder.name}, the project's description, then {sections}"
        return
    except (OSError, ValueError) as error:
        yield f"README.md: {error}"
        return
    title, _, rest = text.partition("\n")
    if title != f"# {folder.name}" or not description or not rest.strip().startswith(description):
        yield f"README.md: begin with # {folder.name} and the description of pyproject.toml: {description!r}"
    if [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")] != list(SECTIONS):
        yield f"README.md: its sections are, in this order, {sections}"
    if declaration.owner not in text:
        yield f"README.md: name the owner, {declaration.owner}"
    for setting in settings_of(folder):
        if f"`{setting}`" not in text:
            yield f"README.md: explain the setting `{setting}`"


def _tests(tree: ast.Module) -> Iterator[str]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    asserting = {function.name for function in functions if _asserts(function)}
    tests = [function for function in functions if function.name.startswith("test")]
    for kind in KINDS_OF_TEST:
        if not any(test.name.startswith(kind) for test in tests):
            yield f"add a test {kind}..."
    for test in tests:
        if test.name.startswith(REQUIRED_TESTS) and not (_asserts(test) or asserting & {*_called(test)}):
            yield f"{test.name} asserts nothing; compare what run(detector, ...) raises"


def _asserts(function: ast.AST) -> bool:
    """Whether it compares something: by assert, or by a function such as `assertEqual` or `pytest.raises`."""
    named = any(name.lower().startswith(("assert", "raises", "fail", "check")) for name in _called(function))
    return named or any(isinstance(node, ast.Assert) for node in ast.walk(function))


def _called(function: ast.AST) -> Iterator[str]:
    """The last part of the name of each function that it calls."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func).rpartition(".")[2]
