"""What every detector folder must hold, checked without running any of its code."""

import ast
import keyword
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lozenge.detector import reference_tables
from lozenge.detector.manifest import Manifest, parse
from lozenge.errors import ConfigError

SECTIONS = ("Owner", "What fires", "What it misses", "Known false positives", "Settings", "Runbook")
REQUIRED_TESTS = ("test_fires", "test_stays_silent")
KINDS_OF_TEST = (*REQUIRED_TESTS, "test_a_missing")
APPS = ("upstream", "downstream", "agent", "feed")
"""Names that metrics and logs have for the platform's own parts."""


def problems(folder: Path) -> list[str]:
    """Everything that is wrong with the detector in `folder`, each with its file and what to write there."""
    name = folder.name
    project_file = folder / "pyproject.toml"
    if not project_file.is_file():
        return [f"pyproject.toml: missing; `lozenge new {name}` writes one"]
    try:
        text = project_file.read_text("utf-8")
        declared, _, declaration = parse(text, str(project_file))
    except ConfigError as error:
        return [f"pyproject.toml: {problem}" for problem in error.problems or [error.message]]
    project = tomllib.loads(text)
    return [
        *([f"{name}: {problem}"] if (problem := name_problem(name)) else []),
        *([] if declared == name else [f"pyproject.toml: project.name is {declared}, but the folder is {name}"]),
        *_packaging(name, project, declaration),
        *_tables(folder, declaration),
        *_python(folder / f"{name}.py", _module),
        *_readme(folder, project, declaration),
        *_python(folder / f"test_{name}.py", _tests),
    ]


def name_problem(name: str) -> str:
    """Why no detector can have this name, which is also that of its module and topics; "" if one can."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        return "a name is a lower-case letter, then lower-case letters, digits and underscores"
    if keyword.iskeyword(name) or name in sys.stdlib_module_names:
        return "Python has that name for something else"
    if name in APPS or name.startswith("lozenge"):
        return "the platform has that name for something else"
    spec = find_spec(name)
    installed = spec is not None and "site-packages" in (spec.origin or "")
    return "a package that detectors use has that name" if installed else ""


def require_sound(folder: Path) -> None:
    """Raises ConfigError with all problems of the detector in `folder`, if there are any."""
    if found := problems(folder):
        raise ConfigError(
            f"checking {folder.name}: {len(found)} problem(s)",
            problems=found,
            hint=f"fix them, then `lozenge check {folder.name}` again",
        )


def _packaging(name: str, project: dict[str, Any], declaration: Manifest) -> Iterator[str]:
    """The wheel must carry the module, the declaration and the tables, or the job does not find them."""
    shipped = {"pyproject.toml": f"share/lozenge/{name}/pyproject.toml"}
    own = [table.path for table in declaration.tables.values() if not Path(table.path).is_absolute()]
    shipped |= {path: f"share/lozenge/{name}/{path}" for path in own}
    wheel = ("tool", "hatch", "build", "targets", "wheel")
    wanted: list[tuple[tuple[str, ...], object]] = [
        (("project", "entry-points", "lozenge.detectors"), {name: f"{name}:detector"}),
        ((*wheel, "only-include"), [f"{name}.py"]),
        ((*wheel, "shared-data"), shipped),
    ]
    for path, value in wanted:
        if _get(project, path) != value:
            yield f"pyproject.toml: {'.'.join(path)} must be {value}"


def _get(values: Any, path: tuple[str, ...]) -> object:
    for part in path:
        values = values.get(part) if isinstance(values, dict) else None
    return values


def _tables(folder: Path, declaration: Manifest) -> Iterator[str]:
    """What a job would refuse to begin with."""
    for table in declaration.tables.values():
        file = folder / table.path
        if file.exists():
            for problem in reference_tables.problems(table, folder):
                yield f"{table.path}: {problem.removeprefix(f'{file.name} ')}"
        else:
            yield f"{table.path}: missing; [tool.lozenge.tables] names it"


def _python(file: Path, look: Callable[[ast.Module], Iterator[str]]) -> Iterator[str]:
    """What `look` finds in a file, or why it cannot be read."""
    tree = _parsed(file)
    for problem in [tree] if isinstance(tree, str) else look(tree):
        yield f"{file.name}: {problem}"


def _module(tree: ast.Module) -> Iterator[str]:
    if "misses" not in (ast.get_docstring(tree) or ""):
        yield "say in its docstring what fires and what it misses"
    if not any(isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "detector" for node in tree.body):
        yield "end it with detector = Detector(detect, settings=...)"


def _readme(folder: Path, project: dict[str, Any], declaration: Manifest) -> Iterator[str]:
    file = folder / "README.md"
    sections = ", ".join(f"## {section}" for section in SECTIONS)
    if not file.is_file():
        yield f"README.md: missing; write # {folder.name}, the project's description, then {sections}"
        return
    text = file.read_text("utf-8")
    title, _, rest = text.partition("\n")
    description = str(project["project"].get("description", ""))
    if title != f"# {folder.name}" or not description or not rest.strip().startswith(description):
        yield f"README.md: begin with # {folder.name} and the description of pyproject.toml: {description!r}"
    if [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")] != list(SECTIONS):
        yield f"README.md: its sections are, in this order, {sections}"
    if declaration.owner not in text:
        yield f"README.md: name the owner, {declaration.owner}"
    for setting in _settings(folder):
        if f"`{setting}`" not in text:
            yield f"README.md: explain the setting `{setting}`"


def _settings(folder: Path) -> Iterator[str]:
    """The names of its settings; none if the module cannot be parsed, which is another problem's line."""
    tree = _parsed(folder / f"{folder.name}.py")
    for node in [] if isinstance(tree, str) else tree.body:
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "Settings" for base in node.bases):
            yield from (ast.unparse(field.target) for field in node.body if isinstance(field, ast.AnnAssign))


def _tests(tree: ast.Module) -> Iterator[str]:
    tests = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for kind in KINDS_OF_TEST:
        if not any(test.name.startswith(kind) for test in tests):
            yield f"add a test {kind}..."
    for test in tests:
        asserts = any(isinstance(node, ast.Assert) for node in ast.walk(test))
        if test.name.startswith(REQUIRED_TESTS) and not asserts:
            yield f"{test.name} asserts nothing; compare what run(detector, ...) raises"


def _parsed(file: Path) -> ast.Module | str:
    """The syntax tree, or why there is none."""
    try:
        return ast.parse(file.read_text("utf-8"))
    except FileNotFoundError:
        return "missing"
    except (OSError, SyntaxError, ValueError) as error:
        return str(error)
