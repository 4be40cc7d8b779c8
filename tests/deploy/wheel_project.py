"""Projects of detectors that the real build back end makes wheels of."""

from collections.abc import Mapping

_PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "1.0.0"
dependencies = [{dependencies}]

[tool.hatch.build.targets.wheel]
include = ["*"]
exclude = [".*", "/README.md", "/conftest.py", "/test_{name}.py", "/tests"]
sources = {{ "" = "{name}" }}
ignore-vcs = true
{more}"""


def project(name: str, *dependencies: str, more: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """The `pyproject.toml` of the detector `name`, whose wheel holds its folder.

    `more` are further tables by their names.
    """
    tables = [
        f"[{table}]\n" + "".join(f'{key} = "{value}"\n' for key, value in values.items())
        for table, values in (more or {}).items()
    ]
    return _PROJECT.format(
        name=name,
        dependencies=", ".join(f'"{each}"' for each in dependencies),
        more="\n".join(tables),
    )
