"""What the environment of a detector is made of: its wheel, the platform's wheel, and a lock with hashes.

From a source folder they are built once for each state of its files. The back end (hatchling) writes equal
bytes for equal files, so that an unchanged folder gives the same digest on every machine.
"""

import hashlib
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from lozenge.errors import UsageError
from lozenge.toolchain import cache_path
from lozenge_deploy.releases import uv

CHECKOUT = Path(__file__).resolve().parents[3]
PLATFORM = "lozenge-platform"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
"""The Python that a lock made here is for: dependencies differ between minor versions."""
BUILD_CONSTRAINTS = CHECKOUT / "requirements" / "build.txt"
_RUNTIME = CHECKOUT / "requirements" / "runtime.txt"
# What a detector's process can see of the platform; the other stages are in the same wheel, but it never imports them.
_SOURCES = ("pyproject.toml", "requirements/runtime.txt", "shared")


class Wheel(BaseModel):
    """A wheel: the name of its file, which says what it is, and its bytes."""

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64")

    file: str
    content: bytes

    @classmethod
    def within(cls, folder: Path) -> "Wheel":
        """The one wheel in `folder`."""
        [path] = folder.glob("*.whl")
        return cls(file=path.name, content=path.read_bytes())

    def write(self, folder: Path) -> Path:
        """Where it lies once it has been written into `folder`."""
        path = folder / self.file
        path.write_bytes(self.content)
        return path

    @property
    def sha256(self) -> str:
        """The digest by which an installer knows it."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def digest(self) -> str:
        """Twelve hex digits by which people know it."""
        return self.sha256[:12]


@dataclass(frozen=True)
class Parts:
    """All that goes into an environment; `lock` names everything but the two wheels, without any index."""

    detector: str
    wheel: Wheel
    lock: str
    platform: Wheel
    python: str = PYTHON

    @property
    def digest(self) -> str:
        """Twelve hex digits over the contents: the same parts, the same environment."""
        return _digest(self.wheel.sha256, self.lock, self.platform.digest, self.python)


def parts_of(folder: Path) -> Parts:
    """The parts of the detector in `folder`, built unless they have been for these very files.

    Raises UsageError if there is no detector in `folder`, ToolchainError with uv's words if its wheel cannot
    be built or its dependencies do not resolve together with the platform's.
    """
    name = folder.name
    home = cache_path("parts", f"{name}-{digest_of(folder)}")
    platform = _platform()

    def make(stage: Path) -> None:
        print(f"building detector {name}", file=sys.stderr)
        _build(folder, stage, f"building the wheel of {name}")
        _lock(folder, platform, stage / "lock.txt")

    uv.made_once(home, make)
    return Parts(name, Wheel.within(home), (home / "lock.txt").read_text("utf-8"), Wheel.within(platform))


def digest_of(folder: Path) -> str:
    """Twelve hex digits over the detector's files, the platform's files and the Python version."""
    if not (folder / "pyproject.toml").is_file():
        raise UsageError(
            f"preparing a detector: {folder} has no pyproject.toml",
            hint="a detector is a folder <name>/ with <name>.py, pyproject.toml, test_<name>.py and README.md",
        )
    return _digest(_platform_digest(), *(_content(file, folder) for file in _files(folder)))


def digest_with_tests(folder: Path) -> str:
    """Twelve hex digits over what `digest_of` looks at and the detector's tests."""
    return _digest(digest_of(folder), *(_content(file, folder) for file in sorted(folder.rglob("test_*.py"))))


@cache
def _platform_digest() -> str:
    files = [file for source in _SOURCES for file in _files(CHECKOUT / source)]
    return _digest(sys.version, *(_content(file, CHECKOUT) for file in files))


def _platform() -> Path:
    """The folder with the platform's wheel, built once for all detectors."""
    home = cache_path("parts", f"{PLATFORM}-{_platform_digest()}")
    return uv.made_once(home, lambda stage: _build(CHECKOUT, stage, "building the platform's wheel"))


def _build(source: Path, target: Path, doing: str) -> None:
    # without isolation: the build back end is the one that is locked and installed here
    python = ("--no-build-isolation", "--python", sys.executable)
    uv.uv(doing, "build", "--wheel", *python, "-o", str(target), str(source))


def _lock(folder: Path, platform: Path, target: Path) -> None:
    """Writes what the detector and the platform need, the platform's own versions as `runtime.txt` has them."""
    with tempfile.TemporaryDirectory() as given:
        always = Path(given, "always.in")
        always.write_text(PLATFORM)  # also for a detector that does not say so
        options = [
            *("--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"),
            *("--no-emit-package", PLATFORM, "--find-links", str(platform), "--python", sys.executable),
            *("--constraint", str(_RUNTIME), "--build-constraints", str(BUILD_CONSTRAINTS), "-o", str(target)),
        ]
        doing = f"locking the dependencies of detector {folder.name}"
        uv.uv_offline_first(doing, "pip", "compile", *options, str(folder / "pyproject.toml"), str(always))


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
