"""`pyproject.toml` as its readers take it: the build back end, and uv, which resolves the dependencies."""

import os
import platform
import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from lozenge.detector.manifest import value_at
from lozenge_deploy.releases.build import CHECKOUT, PYTHON, RUNTIME, normalised
from lozenge_deploy.releases.source_files import VIRTUAL_ENVIRONMENT, source_files

_BACK_END = "hatchling.build"
_INDEX = "set UV_INDEX, or UV_FIND_LINKS for a folder of wheels, wherever releases are built and run"
_ALL_TESTS = "`lozenge test` and `lozenge deploy` run every test; give options of one run after `--`"
_UNUSED: dict[tuple[str, ...], str] = {
    **{("uv", key): _INDEX for key in ("index", "index-url", "extra-index-url", "find-links", "pip")},
    **{("uv", f"{key}-dependencies"): "write versions in project.dependencies" for key in ("constraint", "override")},
    ("poetry", "dependencies"): "write project.dependencies",
    ("pytest", "ini_options", "addopts"): _ALL_TESTS,
    ("pytest", "addopts"): _ALL_TESTS,
}
"""Tables and keys of `[tool]` that an author may expect to count, with what holds instead."""
_SHOWN = 5


def project_problems(folder: Path, project: dict[str, Any]) -> Iterator[str]:
    """What the build of a release would refuse, and files that its wheel would lack."""
    name = folder.name
    wanted = {
        ("build-system", "build-backend"): _BACK_END,
        ("project", "entry-points", "lozenge.detectors"): {name: f"{name}.{name}:detector"},
    }
    for path, value in wanted.items():
        if value_at(project, *path) != value:
            yield f"pyproject.toml: {'.'.join(path)} must be {value}"
    python = value_at(project, "project", "requires-python")
    with suppress(InvalidSpecifier):  # which the back end reports
        if python is not None and platform.python_version() not in SpecifierSet(str(python)):
            yield f"pyproject.toml: project.requires-python is {python!r}, and releases are for Python {PYTHON}"
    problems = [*_dependencies(project)]
    yield from problems or _back_end(folder, project)


def project_warnings(project: dict[str, Any]) -> Iterator[str]:
    """Settings of other tools that no release uses, though they say where packages come from or which tests run."""
    for path, instead in _UNUSED.items():
        if value_at(project, "tool", *path) is not None:
            yield f"pyproject.toml: tool.{'.'.join(path)} is not used for a release: {instead}"


def wheel_options(name: str) -> str:
    """The options of the build back end with which the wheel of the detector `name` holds its folder as a package."""
    kept = ", ".join(f'"{pattern}"' for pattern in (".*", "/README.md", "/conftest.py", f"/test_{name}.py", "/tests"))
    return f'include = ["*"], exclude = [{kept}], sources = {{ "" = "{name}" }}, ignore-vcs = true'


def _dependencies(project: dict[str, Any]) -> Iterator[str]:
    """Requirements that no index answers: a release is installed anywhere from an index, by version and hash."""
    given = value_at(project, "project", "dependencies")
    for text in given if isinstance(given, list) else []:
        try:
            required = Requirement(str(text))
        except InvalidRequirement as error:
            yield f"pyproject.toml: project.dependencies: {text!r}: {str(error).partition(chr(10))[0]}"
            continue
        if required.url:
            yield (
                f"pyproject.toml: project.dependencies: {required.name} has an address; a release takes packages from "
                f'an index by version: write "{required.name}==<version>", and publish its wheel to an index '
                "(UV_INDEX) or to a folder of wheels (UV_FIND_LINKS)"
            )
            continue
        if required.marker is not None and not required.marker.evaluate():
            continue  # not for the Python of a release
        if (pinned := _platform_pins().get(normalised(required.name))) and pinned not in required.specifier:
            yield (
                f"pyproject.toml: project.dependencies: {text!r}: the platform's code needs {required.name} {pinned}, "
                "which is in the environment of every detector"
            )
    if sources := value_at(project, "tool", "uv", "sources"):
        names = ", ".join(sources) if isinstance(sources, dict) else str(sources)
        yield (
            f"pyproject.toml: tool.uv.sources is not used for a release: publish {names} to an index (UV_INDEX) or to "
            "a folder of wheels (UV_FIND_LINKS)"
        )


@cache
def _platform_pins() -> dict[str, str]:
    """The version of each package that the library declares; a detector may choose the version of any other."""
    library = tomllib.loads((CHECKOUT / "shared" / "pyproject.toml").read_text("utf-8"))["project"]
    texts = [*library["dependencies"], *library["optional-dependencies"]["job"]]
    declared = {normalised(Requirement(text).name) for text in texts}
    pins = re.findall(r"^([\w.-]+)==(\S+)", RUNTIME.read_text("utf-8"), re.MULTILINE)
    found = {normalised(name): version for name, version in pins if normalised(name) in declared}
    return found | {library["name"]: library["version"]}


def _back_end(folder: Path, project: dict[str, Any]) -> Iterator[str]:
    """What the build back end says itself, without building."""
    try:
        builder = WheelBuilder(str(folder))
        builder.metadata.validate_fields()
        held = {file.distribution_path for file in builder.recurse_included_files()}
    except Exception as error:  # the classes of its errors are its own affair
        yield f"pyproject.toml: the build back end refuses it: {error}"
        return
    files = [file.relative_to(folder).as_posix() for file in source_files(folder)]
    for file in files:
        if not (folder / file).exists():
            yield f"{file}: a link to nothing"
    lacking = [file for file in files if _belongs(folder.name, file) and f"{folder.name}/{file}" not in held]
    if lacking:
        more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
        yield (
            f"pyproject.toml: the wheel would lack {', '.join(lacking[:_SHOWN])}{more}: "
            f"[tool.hatch.build.targets.wheel] must be {wheel_options(folder.name)}"
        )
    for file in held:
        if file.endswith(f"/{VIRTUAL_ENVIRONMENT}"):
            place = "/".join(file.split("/")[1:-1])
            yield f"{place}/: a release would hold this virtual environment: remove it, or call it .venv"
    for path in _table_paths(project):
        named = f"{folder.name}/{path}"
        if (folder / path).exists() and not any(file == named or file.startswith(f"{named}/") for file in held):
            yield (
                f"{path}: no release has it, though [tool.lozenge.tables] names it: put it into the folder, not into "
                "tests/ and not under a name that begins with a dot, or name it by an absolute path that every host has"
            )


def _table_paths(project: dict[str, Any]) -> Iterator[str]:
    """The relative paths of the declared tables, as they are in the folder."""
    for table in (value_at(project, "tool", "lozenge", "tables") or {}).values():
        if table.get("path") and not os.path.isabs(table["path"]):
            yield os.path.normpath(table["path"])


def _belongs(name: str, file: str) -> bool:
    """Whether a release must have the file: all but the documents, the tests and what a build has written."""
    built = file.startswith("dist/") and file.endswith((".whl", ".tar.gz"))
    return not (built or file.startswith("tests/") or file in ("README.md", "conftest.py", f"test_{name}.py"))
