"""Every detector folder keeps the same promises. Metadata only: what they find is tested beside each."""

import ast
import csv
import tomllib
from pathlib import Path
from typing import Any

import pytest

from lozenge.declaration import parse

DETECTORS = Path(__file__).parents[1] / "detectors"
FOLDERS = sorted(file.parent for file in DETECTORS.glob("*/pyproject.toml"))
SECTIONS = ["Owner", "What fires", "What it misses", "Known false positives", "Settings", "Runbook"]

pytestmark = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))


def functions(file: Path) -> list[str]:
    return [node.name for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.FunctionDef)]


def readme(folder: Path) -> str:
    file = folder / "README.md"
    sections = ", ".join(f"## {section}" for section in SECTIONS)
    assert file.is_file(), f"add {folder.name}/README.md: # {folder.name}, its description, then {sections}"
    return file.read_text("utf-8")


def test_the_declaration_is_valid(folder: Path) -> None:
    name, _, _ = parse((folder / "pyproject.toml").read_text("utf-8"), str(folder / "pyproject.toml"))
    assert name == folder.name, "folder, module, project name and entry point are one and the same name"


def test_the_files_are_there(folder: Path) -> None:
    for file in (f"{folder.name}.py", f"test_{folder.name}.py"):
        assert (folder / file).is_file(), f"add {folder.name}/{file}"


def test_the_wheel_carries_what_the_job_reads(folder: Path) -> None:
    declared = project(folder)
    assert declared["project"]["entry-points"]["lozenge.detectors"] == {folder.name: f"{folder.name}:detector"}
    wheel = declared["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["only-include"] == [f"{folder.name}.py"]
    tables = [table["path"] for table in declared["tool"]["lozenge"].get("tables", {}).values()]
    shipped = {path: f"share/lozenge/{folder.name}/{path}" for path in ["pyproject.toml", *tables]}
    assert wheel["shared-data"] == shipped, "declaration and tables travel as shared data"


def test_its_csv_tables_have_the_declared_columns(folder: Path) -> None:
    for table in project(folder)["tool"]["lozenge"].get("tables", {}).values():
        with (folder / table["path"]).open(newline="", encoding="utf-8") as file:
            header = next(csv.reader(file))
        assert header == [column.split()[0] for column in table["columns"].split(", ")]


def test_the_description_is_the_first_sentence_a_reader_meets(folder: Path) -> None:
    description = project(folder)["project"]["description"]
    title, _, text = readme(folder).partition("\n")
    assert title == f"# {folder.name}", f"begin {folder.name}/README.md with: # {folder.name}"
    assert text.strip().startswith(description), f"begin {folder.name}/README.md with: {description}"
    docstring = ast.get_docstring(ast.parse((folder / f"{folder.name}.py").read_text("utf-8")))
    assert docstring, f"say in {folder.name}.py what fires and what it misses"
    assert "misses" in docstring, f"say in the docstring of {folder.name}.py what it misses"


def test_the_readme_has_its_sections(folder: Path) -> None:
    found = [line.removeprefix("## ") for line in readme(folder).splitlines() if line.startswith("## ")]
    assert found == SECTIONS, f"{folder.name}/README.md: its sections (##) are, in this order, {', '.join(SECTIONS)}"


def test_the_readme_names_owner_and_settings(folder: Path) -> None:
    text, owner = readme(folder), project(folder)["tool"]["lozenge"]["owner"]
    assert owner in text, f"name the owner, {owner}, in {folder.name}/README.md"
    module = ast.parse((folder / f"{folder.name}.py").read_text("utf-8"))
    for node in module.body:
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "Settings" for base in node.bases):
            names = [ast.unparse(field.target) for field in node.body if isinstance(field, ast.AnnAssign)]
            missing = [name for name in names if f"`{name}`" not in text]
            assert not missing, f"explain these settings in {folder.name}/README.md: {missing}"


def test_its_tests_show_both_sides(folder: Path) -> None:
    tests = [name for name in functions(folder / f"test_{folder.name}.py") if name.startswith("test_")]
    for kind in ("test_fires", "test_stays_silent", "test_a_missing", "test_tells_the_same"):
        assert any(name.startswith(kind) for name in tests), f"add a {kind}... to test_{folder.name}.py"
