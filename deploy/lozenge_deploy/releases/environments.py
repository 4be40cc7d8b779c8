"""One virtual environment per detector: what its lock names, the platform's wheel, and its own.

An environment lives in the user's cache under a digest of everything that goes into it, so it is made
once and never changed; uv links the files from its own cache, so each further one is small and quick. A
folder and a release that hold the same share one.
"""

import importlib.metadata
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

from lozenge.errors import ToolchainError
from lozenge.toolchain import cache_path
from lozenge_deploy.releases import uv
from lozenge_deploy.releases.build import BUILD_CONSTRAINTS, PLATFORM, PYTHON, Parts, parts_of


def environment_of(folder: Path) -> Path:
    """The Python that runs the detector in `folder`; raises as `parts_of` and `environment` do."""
    return environment(parts_of(folder))


def environment(parts: Parts) -> Path:
    """The Python that runs a detector; makes its environment from `parts` alone, if there is no whole one.

    Safe to call at once from several processes. Raises ToolchainError with uv's words if what the lock names
    cannot be had or is not what its hash says, or if the parts are for another Python.
    """
    if parts.python != PYTHON:
        raise ToolchainError(
            f"making the environment of detector {parts.detector}: it is for Python {parts.python}, this is {PYTHON}",
            hint=f"run Lozenge in Python {parts.python} on this machine, or make the release again with {PYTHON}",
        )
    home = cache_path("environments", f"{parts.detector}-{parts.digest}")
    uv.made_once(home, lambda stage: _make(parts, stage), lambda home: _whole(home, parts.detector))
    return home / "bin" / "python"


def in_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """`variables` as a process in a detector's environment needs them.

    The environment is complete and lies in our cache: nothing is added to it, and it may keep compiled modules.
    All share one copy of Spark's jars, so that they share pages and the class-data archive.
    """
    kept = {n: value for n, value in variables.items() if n not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}
    return kept | {"SPARK_HOME": str(_find_spark_home())}


def _make(parts: Parts, stage: Path) -> None:
    doing = f"making the environment of detector {parts.detector}"
    print(f"{doing} (once for this version of it)", file=sys.stderr)
    with tempfile.TemporaryDirectory() as given:
        wheels = [f"{w.write(Path(given)).as_uri()} --hash=sha256:{w.sha256}" for w in (parts.platform, parts.wheel)]
        requirements = Path(given, "requirements.txt")
        requirements.write_text("\n".join([parts.lock, *wheels, ""]), "utf-8")
        # relocatable: it is made beside its place and renamed when it is complete
        uv.uv(doing, "venv", "--relocatable", "--python", sys.executable, str(stage))
        python = ("--python", str(stage / "bin" / "python"))
        hashes = ("--require-hashes", "--build-constraints", str(BUILD_CONSTRAINTS))
        uv.uv_offline_first(doing, "pip", "install", *python, *hashes, "-r", str(requirements))


def _whole(home: Path, name: str) -> bool:
    """Whether `home` is complete: a Python that resolves, and every file of the two wheels."""
    site = next(home.glob("lib/python*/site-packages"), None)
    if site is None or not (home / "bin" / "python").exists():
        return False
    found = {d.name: d for d in importlib.metadata.distributions(path=[str(site)])}
    ours = [found.get(PLATFORM), found.get(name)]
    return all(d is not None and all(Path(str(f.locate())).exists() for f in d.files or ()) for d in ours)
