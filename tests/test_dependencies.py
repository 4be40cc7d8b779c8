"""Each distribution declares what its modules import, and imports what it declares."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
OURS = {"lozenge", "lozenge_upstream", "lozenge_downstream", "lozenge_deploy"}
# import name -> distribution, where they differ
NAMES = {
    "confluent_kafka": "confluent-kafka",
    "kafka": "kafka-python",
    "prometheus_client": "prometheus-client",
    "pydantic_core": "pydantic-core",
    "pydantic_settings": "pydantic-settings",
    "re2": "google-re2",
}
# what may be declared without an import of ours, and why
UNSEEN = {
    "lozenge": {"pandas"},  # Spark imports it
    "lozenge-platform": {
        "lozenge",
        "alembic",  # its command runs the migrations
        "psycopg",  # SQLAlchemy imports it
    },
}
DISTRIBUTIONS = {
    "lozenge": (ROOT / "shared" / "pyproject.toml", [ROOT / "shared"]),
    "lozenge-platform": (ROOT / "pyproject.toml", [ROOT / stage for stage in ("upstream", "downstream", "deploy")]),
}


def imported(folders: list[Path]) -> Iterator[str]:
    """The distribution of every import of a package that is neither Python's nor ours."""
    for folder in folders:
        for file in folder.rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    names = [node.module]
                for name in (name.partition(".")[0] for name in names):
                    if name not in OURS and name not in sys.stdlib_module_names:
                        yield NAMES.get(name, name)


def required(requirements: list[str]) -> set[str]:
    """The names in a list of requirements."""
    return {re.split(r"[^A-Za-z0-9._-]", text, maxsplit=1)[0] for text in requirements}


def project(file: Path) -> Mapping[str, Any]:
    found: Mapping[str, Any] = tomllib.loads(file.read_text())["project"]
    return found


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_distribution_declares_what_it_imports_and_little_else(name: str) -> None:
    file, folders = DISTRIBUTIONS[name]
    found = project(file)
    assert found["name"] == name
    extras = found["optional-dependencies"].values()
    declared = required([*found["dependencies"], *(text for extra in extras for text in extra)])
    seen = set(imported(folders))
    assert seen - declared == set()
    assert declared - seen <= UNSEEN[name]


def test_the_platform_needs_the_library_of_its_own_version() -> None:
    library, platform = (project(file) for file, _ in DISTRIBUTIONS.values())
    assert library["version"] == platform["version"]
    assert f"lozenge[archive,cache,job]=={library['version']}" in platform["dependencies"]
