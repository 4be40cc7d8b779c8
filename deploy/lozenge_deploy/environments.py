"""One virtual environment per detector: the locked platform, the detector's wheel, and its own dependencies.

An environment lives in the user's cache under a digest of everything that goes into it, so it is made
once and never changed; uv links the files from its own cache, so each further one is small and quick.
"""

import contextlib
import fcntl
import hashlib
import importlib.metadata
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home
from uv import find_uv_bin

from lozenge.errors import ToolchainError, UsageError
from lozenge.toolchain import cache_path

CHECKOUT = Path(__file__).resolve().parents[2]
PLATFORM = "lozenge-platform"
# What a detector's process can see of the platform; the other stages are in the same wheel, but it never imports them.
_SOURCES = ("pyproject.toml", "requirements/runtime.txt", "shared")
_LOCK = CHECKOUT / "requirements" / "runtime.txt"


def environment_of(folder: Path) -> Path:
    """The Python that runs the detector in `folder`; makes its environment if there is no whole one.

    Safe to call at once from several processes. Raises UsageError if there is no detector in `folder`,
    ToolchainError with uv's words if its wheel cannot be built or its dependencies do not resolve.
    """
    home = cache_path("environments", f"{folder.name}-{digest_of(folder)}")
    if not _whole(home, folder.name):
        with _lock(folder.name):
            if not _whole(home, folder.name):
                _make(folder, home)
    return home / "bin" / "python"


def in_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """`variables` as a process in a detector's environment needs them.

    The environment is complete and lies in our cache: nothing is added to it, and it may keep compiled modules.
    All share one copy of Spark's jars, so that they share pages and the class-data archive.
    """
    kept = {n: value for n, value in variables.items() if n not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}
    return kept | {"SPARK_HOME": str(_find_spark_home())}


def digest_of(folder: Path) -> str:
    """Twelve hex digits over the detector's files, the platform's files and the Python version."""
    if not (folder / "pyproject.toml").is_file():
        raise UsageError(
            f"preparing a detector: {folder} has no pyproject.toml",
            hint="a detector is a folder <name>/ with <name>.py, pyproject.toml, test_<name>.py and README.md",
        )
    return _digest(_platform_digest(), *(_content(file, folder) for file in _files(folder)))


def _make(folder: Path, home: Path) -> None:
    doing = f"making the environment of detector {folder.name}"
    print(f"{doing} (once for this version of it)", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=home.parent) as made:
        stage = Path(made, "environment")
        wheels = [_platform_wheel(), _wheel(folder, Path(made, "wheels"), f"building the wheel of {folder.name}")]
        # relocatable: it is made beside its place and renamed when it is complete
        _uv(doing, "venv", "--relocatable", "--python", sys.executable, str(stage))
        install = ["pip", "install", "--python", str(stage / "bin" / "python")]
        _install(doing, *install, "--require-hashes", "--build-constraints", _constraints(), "-r", str(_LOCK))
        _install(doing, *install, "--constraint", str(_LOCK), *map(str, wheels))
        shutil.rmtree(home, ignore_errors=True)
        stage.rename(home)


def _whole(home: Path, name: str) -> bool:
    """Whether `home` is complete: a Python that resolves, and every file of the two wheels."""
    site = next(home.glob("lib/python*/site-packages"), None)
    if site is None or not (home / "bin" / "python").exists():
        return False
    found = {d.name: d for d in importlib.metadata.distributions(path=[str(site)])}
    ours = [found.get(PLATFORM), found.get(name)]
    return all(d is not None and all(Path(str(f.locate())).exists() for f in d.files or ()) for d in ours)


@cache
def _platform_digest() -> str:
    files = [file for source in _SOURCES for file in _files(CHECKOUT / source)]
    return _digest(sys.version, *(_content(file, CHECKOUT) for file in files))


def _platform_wheel() -> Path:
    """The platform's wheel, built once for all detectors."""
    home = cache_path("environments", f"platform-{_platform_digest()}")
    with _lock(PLATFORM):
        if not home.exists():
            with tempfile.TemporaryDirectory(prefix=".new-", dir=home.parent) as made:
                _wheel(CHECKOUT, Path(made, "wheels"), "building the platform's wheel")
                Path(made, "wheels").rename(home)
    return next(home.glob("*.whl"))


def _wheel(source: Path, target: Path, doing: str) -> Path:
    # without isolation: the build back end is the one that is locked and installed here
    _uv(doing, "build", "--wheel", "--no-build-isolation", "--python", sys.executable, "-o", str(target), str(source))
    return next(target.glob("*.whl"))


def _constraints() -> str:
    return str(CHECKOUT / "requirements" / "build.txt")


def _install(doing: str, *arguments: str) -> None:
    """From uv's cache alone if everything is there: no network, no waiting."""
    with contextlib.suppress(ToolchainError):
        return _uv(doing, *arguments, "--offline")
    return _uv(doing, *arguments)


def _uv(doing: str, *arguments: str) -> None:
    command = [find_uv_bin(), *arguments, "--quiet", "--no-config", "--system-certs"]
    run = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if run.returncode:
        raise ToolchainError(
            f"{doing}: {run.stderr.strip()}",
            hint="mend `dependencies` in the detector's pyproject.toml (the platform's own versions are fixed by "
            "requirements/runtime.txt), or look at the network; `make setup` repairs the tools",
        )


def _files(place: Path) -> Iterator[Path]:
    """The files below `place` that can matter to a wheel, in order."""
    if place.is_file():
        yield place
        return
    for file in sorted(place.rglob("*")):
        names = file.relative_to(place).parts
        hidden = any(name.startswith(".") or name == "__pycache__" for name in names)
        if file.is_file() and not hidden and not names[-1].startswith("test_"):
            yield file


def _content(file: Path, root: Path) -> str:
    return f"{file.relative_to(root)}:{hashlib.sha256(file.read_bytes()).hexdigest()}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


@contextlib.contextmanager
def _lock(name: str) -> Iterator[None]:
    """One maker per name at a time; the system releases the lock of a process that dies."""
    cache_path("environments").mkdir(parents=True, exist_ok=True)
    with cache_path("environments", f".{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
