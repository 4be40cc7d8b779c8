"""One virtual environment per detector: the packages of its lock, the library's wheel and its own.

An environment is in the user's cache under a digest of everything that goes into it. It is made once and never
changed. uv links the files from its own cache, so each further environment is small and quick. A folder and a
release with the same contents share one.
"""

import importlib.metadata
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from lozenge.errors import ToolchainError
from lozenge.host import base_packages
from lozenge.streams.folder import write_copy
from lozenge.streams.project import STREAMS_VARIABLE
from lozenge.toolchain import cache_path, spark_home
from lozenge.toolchain.java import java_home
from lozenge_deploy.releases import uv
from lozenge_deploy.releases.build import BUILD_CONSTRAINTS, LIBRARY, PYTHON, Parts, Wheel, normalised, parts_of
from lozenge_deploy.releases.build import base as base_parts

STREAMS = "streams"
"""The folder in an environment with the definition of what the detector reads."""
_DROPPED = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONOPTIMIZE", "PYTEST_ADDOPTS", "PYTEST_PLUGINS")
_SAME_EVERYWHERE = {"TZ": "UTC", "PYTHONHASHSEED": "0"}


def environment_of(folder: Path) -> Path:
    """The Python that runs the detector in `folder`; raises as `parts_of` and `environment` do."""
    return environment(parts_of(folder))


def environment(parts: Parts) -> Path:
    """The Python that runs a detector. Makes its environment from `parts` alone, unless a complete one exists.

    Several processes may call it at once. Raises ToolchainError, with uv's words, if a package of the lock is not
    available or differs from its hash, or if the parts are for another Python.
    """
    if parts.python != PYTHON:
        raise ToolchainError(
            f"making the environment of detector {parts.detector}: it is for Python {parts.python}, this is {PYTHON}",
            hint=f"run Lozenge in Python {parts.python} on this machine, or make the release again with {PYTHON}",
        )
    home = cache_path("environments", f"{parts.detector}-{parts.digest}")
    uv.made_once(home, lambda stage: _make(parts, stage), lambda home: _complete(home, parts.wheel.distribution))
    return home / "bin" / "python"


def base_environment() -> Path:
    """The Python of an environment without a detector, whose process those of detectors may be forks of.

    As `environment`; raises ToolchainError.
    """
    base = base_parts()
    home = cache_path("environments", f"{LIBRARY}-{base.digest}")
    doing = f"making the environment of {LIBRARY}"

    def make(stage: Path) -> None:
        _install(doing, stage, base.lock, [base.library])
        (stage / base_packages.FILE).write_text(base.digest, "utf-8")

    uv.made_once(home, make, lambda home: _complete(home))
    return home / "bin" / "python"


def in_environment(variables: Mapping[str, str], python: Path | None = None) -> dict[str, str]:
    """`variables` as a process in a detector's environment needs them.

    The environment is complete and in our cache: nothing is added to it, and it may keep compiled modules.
    All environments share one copy of Spark's jars, so that their JVMs share pages and the class-data archive. The
    Java is the platform's, which may come from a package that the environment does not have. Its code means the same on
    every machine and after every start: the local time is UTC, `hash` of a text is one number, and `assert` counts.
    With the `python` of a detector the streams are those of its environment, whatever is in the project by now.
    """
    streams = {STREAMS_VARIABLE: str(python.parents[1] / STREAMS)} if python is not None else {}
    kept = {name: value for name, value in variables.items() if name not in _DROPPED}
    return kept | {"SPARK_HOME": str(spark_home()), "JAVA_HOME": str(java_home())} | _SAME_EVERYWHERE | streams


def _make(parts: Parts, stage: Path) -> None:
    doing = f"making the environment of detector {parts.detector}"
    _install(doing, stage, parts.lock, [parts.library, parts.wheel])
    write_copy(parts.stream, stage / STREAMS)
    (stage / base_packages.FILE).write_text(parts.base, "utf-8")


def _install(doing: str, stage: Path, lock: str, ours: Sequence[Wheel]) -> None:
    """Makes an environment of what the lock names, and our wheels."""
    print(f"{doing} (once for this version of it)", file=sys.stderr)
    with tempfile.TemporaryDirectory() as given:
        wheels = [f"{w.write(Path(given)).as_uri()} --hash=sha256:{w.sha256}" for w in ours]
        requirements = Path(given, "requirements.txt")
        requirements.write_text("\n".join([lock, *wheels, ""]), "utf-8")
        # relocatable: it is made under another name and renamed when it is complete
        uv.uv(doing, "venv", "--relocatable", "--python", sys.executable, str(stage))
        python = ("--python", str(stage / "bin" / "python"))
        hashes = ("--require-hashes", "--build-constraints", str(BUILD_CONSTRAINTS))
        uv.uv_offline_first(doing, "pip", "install", *python, *hashes, "-r", str(requirements))


def _complete(home: Path, *detector: str) -> bool:
    """Whether `home` has a Python that resolves and every file of our wheels, that of the `detector` among them."""
    site = next(home.glob("lib/python*/site-packages"), None)
    if site is None or not (home / "bin" / "python").exists():
        return False
    found = {normalised(d.name): d for d in importlib.metadata.distributions(path=[str(site)])}
    ours = [found.get(name) for name in (LIBRARY, *detector)]
    return all(d is not None and all(Path(str(f.locate())).exists() for f in d.files or ()) for d in ours)
