"""`pyproject.toml` as uv takes it, which resolves the dependencies, and as a release uses it."""

import platform
import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from lozenge.detector.manifest import value_at
from lozenge_deploy.releases.build import CHECKOUT, LIBRARY, PYTHON, RUNTIME, normalised

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


def project_problems(name: str, project: dict[str, Any]) -> Iterator[str]:
    """What a release of the detector `name` would refuse before its wheel is built."""
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


def project_warnings(project: dict[str, Any]) -> Iterator[str]:
    """Settings of other tools that no release uses, though they say where packages come from or which tests run."""
    for path, instead in _UNUSED.items():
        if value_at(project, "tool", *path) is not None:
            yield f"pyproject.toml: tool.{'.'.join(path)} is not used for a release: {instead}"


def dependency_problems(project: dict[str, Any]) -> Iterator[str]:
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


def dependencies_of(project: dict[str, Any]) -> set[str]:
    """The normalised names of the distributions that the detector declares itself, without the library."""
    given = value_at(project, "project", "dependencies")
    found = set()
    for text in given if isinstance(given, list) else []:
        with suppress(InvalidRequirement):  # a problem of its own
            found.add(normalised(Requirement(str(text)).name))
    return found - {LIBRARY}


@cache
def _platform_pins() -> dict[str, str]:
    """The version of each package that the library declares; a detector may choose the version of any other."""
    library = tomllib.loads((CHECKOUT / "shared" / "pyproject.toml").read_text("utf-8"))["project"]
    texts = [*library["dependencies"], *library["optional-dependencies"]["job"]]
    declared = {normalised(Requirement(text).name) for text in texts}
    pins = re.findall(r"^([\w.-]+)==(\S+)", RUNTIME.read_text("utf-8"), re.MULTILINE)
    found = {normalised(name): version for name, version in pins if normalised(name) in declared}
    return found | {library["name"]: library["version"]}
