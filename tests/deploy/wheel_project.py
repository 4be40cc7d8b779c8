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
only-include = ["{name}.py"]

[tool.hatch.build.targets.wheel.shared-data]
{shared}
{more}"""


def project(name: str, shared: str, *dependencies: str, more: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """The `pyproject.toml` of the detector `name`, whose wheel holds its module and the file `shared`.

    `more` are further tables by their names.
    """
    tables = [
        f"[{table}]\n" + "".join(f'{key} = "{value}"\n' for key, value in values.items())
        for table, values in (more or {}).items()
    ]
    return _PROJECT.format(
        name=name,
        dependencies=", ".join(f'"{each}"' for each in dependencies),
        shared=f'"{shared}" = "share/lozenge/{name}/{shared}"',
        more="\n".join(tables),
    )
