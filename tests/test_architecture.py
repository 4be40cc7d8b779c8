"""The shape of the code: which package may import which, how large folders, files and classes may be, what starts load.

The import contracts stand in `pyproject.toml`. import-linter checks them here.
"""

import ast
import subprocess
import sys
from collections.abc import Collection, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import lozenge

ROOT = Path(__file__).parents[1]
DETECTORS = sorted(path.parent for path in ROOT.glob("detectors/*/pyproject.toml"))
SOURCE_ROOTS = ("shared", "upstream", "downstream", "deploy")
OURS = {"lozenge", *(f"lozenge_{stage}" for stage in SOURCE_ROOTS[1:]), *(folder.name for folder in DETECTORS)}
AUTHORS = {"lozenge", "lozenge.testing"}
"""What a detector may import of ours."""
MOST_MODULES = 15
MOST_METHODS, MOST_ATTRIBUTES, MOST_LINES = 15, 12, 300
VALUES = {"BaseModel", "BaseSettings", "NamedTuple", "Struct"}
"""Whose subclasses are values: of pydantic, of msgspec and of Python."""
WIDE_VALUES = {
    "Manifest": "mirrors [tool.lozenge], which an author writes",
    "JobSettings": "mirrors the environment of a job",
    "UpstreamSettings": "mirrors the environment of a normaliser",
    "StreamDefinition": "mirrors the files of a stream's folder",
    "FileSource": "mirrors the declaration of a file source",
    "PlatformTable": "mirrors the declaration of a table of the platform",
    "Route": "mirrors a route of the routing file",
    "DeploymentSpec": "mirrors a record: what an operator wants of a detector",
    "DeploymentStatus": "mirrors a record: what the agent has made of it",
    "JobStatus": "mirrors the file that a job writes for its agent",
    "CoverageSegment": "mirrors a record of the coverage topic",
    "DeadLetter": "mirrors the headers of a dead letter and the record that they are about",
    "PublishedAlert": "mirrors the alert that detectors write, in the notifier",
    "BacktestResult": "mirrors the JSON object that a backtest prints",
    "Reading": "mirrors a row of `lozenge status`",
    "TopicCounts": "mirrors the reconciliation that ends a demo",
}
"""The values with more attributes than a class with behaviour may have, and what each mirrors (docs/adr/0147)."""
STARTS = ("lozenge", "lozenge_deploy.command", "lozenge_deploy.cli.__main__", "lozenge_downstream.__main__")
"""Modules that are imported without PySpark."""
TESTS_OF_WHOLE_PACKAGES = {"test_public_api.py", "test_fuzz.py"}
TESTED_MODULE_BY_MODULE = ("lifecycle", "commit", "operators", "drivers")
"""The packages of `lozenge.job` of which each module has a test file of its name."""
DECIDE_NOTHING = {"operator"}
"""Modules of these that only name an interface."""
ONE_PER_MODULE = {"Channel", "Sender"}
"""Names by which a registry finds the class of each channel."""


INTERNALS = "shared/lozenge/spark/internals/"
BEHIND_PYSPARK = {"_jvm", "_jsc", "_jdf", "_jsq", "_jsparkSession", "_jreader", "_jwrite", "_jconf", "_gateway"}


def _imports(file: Path) -> Iterator[tuple[int, str]]:
    """Line and module of every import, also of those inside functions."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module


def test_import_contracts_hold() -> None:
    linter = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    result = subprocess.run([sys.executable, "-c", linter], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda folder: folder.name)
def test_a_detector_imports_the_authors_names_alone(detector: Path) -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{line} imports {module}"
        for file in detector.rglob("*.py")
        for line, module in _imports(file)
        if module.split(".")[0] in OURS - {detector.name} and module not in AUTHORS
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("root", SOURCE_ROOTS)
def test_every_source_root_holds_one_package(root: str) -> None:
    packages = [path.parent.name for path in (ROOT / root).glob("*/__init__.py")]
    assert len(packages) == 1, f"{root}/ holds {packages}: a source root has exactly one import package"


def test_no_folder_has_more_modules_than_a_reader_can_hold() -> None:
    larger = {
        str(folder.parent.relative_to(ROOT))
        for root in SOURCE_ROOTS
        for folder in (ROOT / root).rglob("__init__.py")
        if sum(file.name != "__init__.py" for file in folder.parent.glob("*.py")) > MOST_MODULES
    }
    assert not larger


def test_no_file_and_no_class_is_larger_than_a_reader_can_hold() -> None:
    """A class has few methods, and a class with behaviour has few attributes.

    A value that mirrors a file or a record has as many attributes as that has facts. Values are frozen dataclasses,
    named tuples, structs of msgspec, and models and settings of pydantic.
    """
    files = {file: file.read_text() for root in SOURCE_ROOTS for file in sorted((ROOT / root).rglob("*.py"))}
    larger = [f"{file} has {len(text.splitlines())} lines" for file, text in files.items() if _is_long(text)]
    classes = [(file, node) for file, text in files.items() for node in _classes(text)]
    values = _values([node for _, node in classes])
    for file, node in classes:
        methods, attributes = len(_methods(node)), len(_attributes(node))
        if methods > MOST_METHODS or (attributes > MOST_ATTRIBUTES and node.name not in WIDE_VALUES.keys() & values):
            larger.append(f"{file}: {node.name} has {methods} methods and {attributes} attributes")
    assert not larger, "\n".join(larger) + "\nFind the second idea in it, and give that a module or class of its own."
    wide = {node.name for _, node in classes if len(_attributes(node)) > MOST_ATTRIBUTES}
    assert wide == WIDE_VALUES.keys(), "the list names no other values"


def _is_long(text: str) -> bool:
    return len(text.splitlines()) > MOST_LINES


def _classes(text: str) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef))


def _methods(node: ast.ClassDef) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [child for child in node.body if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)]


def _attributes(node: ast.ClassDef) -> set[str]:
    """What is declared in the class, and what its methods assign to `self`."""
    declared = {c.target.id for c in node.body if isinstance(c, ast.AnnAssign) and isinstance(c.target, ast.Name)}
    nodes = (inner for method in _methods(node) for inner in ast.walk(method))
    return declared | {
        inner.attr
        for inner in nodes
        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store) and ast.unparse(inner.value) == "self"
    }


def _values(classes: Collection[ast.ClassDef]) -> set[str]:
    """The names of the classes that are values, and of the bases that make them so."""
    bases = {node.name: {ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases} for node in classes}
    frozen = {node.name for node in classes if any("frozen=True" in ast.unparse(d) for d in node.decorator_list)}
    values, found = set[str](), VALUES | frozen
    while found - values:
        values |= found
        found = {name for name in bases if bases[name] & values}
    return values


def test_no_module_of_lozenge_hides_a_name_of_its_api() -> None:
    """Importing a submodule binds its name in the package, where it would take the place of the API's own."""
    modules = {module.name for module in iter_modules(lozenge.__path__)}
    assert not modules & set(lozenge.__all__)


def test_the_api_is_complete() -> None:
    """Every name of `__all__` is there, and the type checker sees the same names as an importer."""
    assert {name for name in lozenge.__all__ if getattr(lozenge, name, None) is None} == set()
    tree = ast.parse(Path(import_module("lozenge").__file__ or "").read_text())
    checked = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert set(lozenge.__all__) == checked - {"import_module", "TYPE_CHECKING", "Any"}


@pytest.mark.parametrize("module", STARTS)
def test_a_start_loads_no_pyspark(module: str) -> None:
    code = f"import sys, {module}; raise SystemExit('pyspark' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, f"{module} imports pyspark\n{result.stderr}"


def test_one_package_reaches_behind_pyspark() -> None:
    """An upgrade of Spark is then a matter of that package and its contract tests."""
    tracked = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    wrong = [
        f"{file}:{line} says {name}"
        for file in tracked.stdout.splitlines()
        if not file.startswith(INTERNALS) and (ROOT / file).exists()
        for line, name in _behind_pyspark(ROOT / file)
    ]
    assert not wrong, "\n".join(wrong) + f"\nPut it into {INTERNALS}, with a test in tests/spark_contract."


def _behind_pyspark(file: Path) -> Iterator[tuple[int, str]]:
    """PySpark's JVM objects and private names, Spark's own classes, and words of a query's status."""
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.Attribute(attr=name) if name in BEHIND_PYSPARK:
                yield node.lineno, name
            case ast.Attribute(attr="spark", value=ast.Attribute(attr="apache")):
                yield node.lineno, "a class of Spark"
            case ast.ImportFrom(module="pyspark.java_gateway"):
                yield node.lineno, "pyspark.java_gateway"
            case ast.ImportFrom(module=str(module)) if module.startswith("pyspark"):
                yield from ((node.lineno, a.name) for a in node.names if a.name.startswith("_"))
            case ast.Subscript(slice=ast.Constant(value="isTriggerActive")):
                yield node.lineno, "isTriggerActive"


@pytest.mark.parametrize("root", SOURCE_ROOTS)
def test_tests_mirror_the_sources(root: str) -> None:
    package = next(child for child in (ROOT / root).iterdir() if (child / "__init__.py").exists())
    wrong = [
        str(test.relative_to(ROOT))
        for test in sorted((ROOT / "tests" / root).rglob("test_*.py"))
        if test.name not in TESTS_OF_WHOLE_PACKAGES and not _tested(package, test.relative_to(ROOT / "tests" / root))
    ]
    assert not wrong, f"no module of {package.name} has these names: {wrong}"


@pytest.mark.parametrize("package", TESTED_MODULE_BY_MODULE)
def test_each_module_of_a_jobs_core_has_a_test_file(package: str) -> None:
    modules = {file.stem for file in (ROOT / "shared/lozenge/job" / package).glob("[!_]*.py")} - DECIDE_NOTHING
    tests = {test.stem.removeprefix("test_") for test in (ROOT / "tests/shared/job" / package).glob("test_*.py")}
    assert modules - tests == set()


def test_a_class_name_means_one_thing() -> None:
    found: dict[str, list[str]] = {}
    for root in SOURCE_ROOTS:
        for file in sorted((ROOT / root).rglob("*.py")):
            for node in ast.parse(file.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in ONE_PER_MODULE:
                    found.setdefault(node.name, []).append(str(file.relative_to(ROOT)))
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def _tested(package: Path, test: Path) -> bool:
    """Whether there is a module, or a package, of a test's name; `test_main` tests `__main__`."""
    name = test.stem.removeprefix("test_")
    module = package / test.parent / name
    return any(path.exists() for path in (module, module.with_suffix(".py"), module.with_name(f"__{name}__.py")))
