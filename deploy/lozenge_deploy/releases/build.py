"""What the environment of a detector is made of: its wheel, the library's wheel, and a lock with hashes.

Each is built once for each state of the files that it is made from. The back end (hatchling) writes equal
bytes for equal files, so that an unchanged folder gives the same wheel on every machine.
"""

import hashlib
import io
import re
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from email import message_from_string
from functools import cache
from pathlib import Path

from packaging.requirements import Requirement
from pydantic import BaseModel, ConfigDict

from lozenge.detector.input_stream import together
from lozenge.detector.manifest import value_at
from lozenge.errors import UsageError
from lozenge.streams.alert_stream import alert_stream
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.project import Streams
from lozenge.toolchain import cache_path
from lozenge_deploy.releases import uv
from lozenge_deploy.releases.source_files import source_files

CHECKOUT = Path(__file__).resolve().parents[3]
LIBRARY = "lozenge"
"""The distribution that every detector depends on, with its extra `job`."""
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
"""The Python that a lock made here is for: dependencies differ between minor versions."""
LARGEST_WHEEL = 32_000_000
"""Bytes. Every command that reads releases reads those of all detectors."""
SMALLER = (
    "name a large table by an absolute path that every host has, and make a large model a package of its own in "
    "`dependencies`"
)
"""What to do about a wheel that is larger."""
BUILD_CONSTRAINTS = CHECKOUT / "requirements" / "build.txt"
RUNTIME = CHECKOUT / "requirements" / "runtime.txt"
_SOURCES = CHECKOUT / "shared"


class Wheel(BaseModel):
    """A wheel: its file name, which states distribution, version and tags, and its bytes."""

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64")

    file: str
    content: bytes

    @classmethod
    def within(cls, folder: Path) -> "Wheel":
        """The one wheel in `folder`."""
        [path] = folder.glob("*.whl")
        return cls(file=path.name, content=path.read_bytes())

    def write(self, folder: Path) -> Path:
        """Writes it into `folder` and returns its path."""
        path = folder / self.file
        path.write_bytes(self.content)
        return path

    @property
    def distribution(self) -> str:
        """The normalised name of its distribution."""
        return normalised(self.file.partition("-")[0])

    @property
    def sha256(self) -> str:
        """The digest by which an installer checks it."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def digest(self) -> str:
        """Twelve hex digits for people."""
        return self.sha256[:12]


@dataclass(frozen=True)
class Base:
    """What the environments of all detectors have in common that declare no package of their own."""

    lock: str
    library: Wheel
    python: str = PYTHON

    @property
    def digest(self) -> str:
        """Twelve hex digits over all of it."""
        return _digest(self.lock, self.library.sha256, self.python)


@dataclass(frozen=True)
class Parts:
    """All that goes into an environment; `lock` names everything but the two wheels, without any index.

    `stream` is what the detector reads, of which the environment has a copy.
    """

    detector: str
    wheel: Wheel
    lock: str
    library: Wheel
    stream: StreamDefinition
    python: str = PYTHON

    @property
    def digest(self) -> str:
        """Twelve hex digits over the contents: the same parts, the same environment."""
        return _digest(self.wheel.sha256, self.lock, self.library.sha256, self.python, self.stream.digest)

    @property
    def base(self) -> str:
        """Twelve hex digits over all but the detector's own wheel and its stream."""
        return Base(self.lock, self.library, self.python).digest


def base() -> Base:
    """The library and what it needs, in the versions of this platform; raises ToolchainError."""
    library = _library()
    return Base(_lock_of(LIBRARY, None, library), library)


def parts_of(folder: Path) -> Parts:
    """The parts of the detector in `folder`, built unless they have been for these very files.

    Raises ConfigError for its streams, UsageError if there is no detector in `folder` or if its wheel is too large.
    Raises ToolchainError with uv's words if its wheel cannot be built or its dependencies do not resolve together with
    the library's.
    """
    name = folder.name
    home = cache_path("parts", f"{name}-{digest_of(folder)}")

    def make(stage: Path) -> None:
        print(f"building detector {name}", file=sys.stderr)
        _build(folder, stage, f"building the wheel of {name}")

    wheel = Wheel.within(uv.made_once(home, make))
    if len(wheel.content) > LARGEST_WHEEL:
        size, most = len(wheel.content) / 1e6, LARGEST_WHEEL / 1e6
        raise UsageError(
            f"building the wheel of {name}: it has {size:.1f} MB, at most {most:g} are kept in a release",
            hint=SMALLER,
        )
    library = _library()
    return Parts(name, wheel, _lock_of(name, wheel, library), library, _stream_of(folder))


def _stream_of(folder: Path) -> StreamDefinition:
    declared = value_at(tomllib.loads((folder / "pyproject.toml").read_text("utf-8")), "tool", "lozenge") or {}
    if watched := declared.get("alerts_of"):
        return alert_stream(str(watched), str(declared.get("key", "")))
    several = declared.get("streams")
    names = several if isinstance(several, list) and several else [declared.get("stream", "")]
    streams = Streams.load(folder)
    return together([streams.get(str(name)) for name in names], str(declared.get("key", "")))


def digest_of(folder: Path) -> str:
    """Twelve hex digits over every file in the folder of a detector, its tests included, and the library's.

    The build back end decides which of them the wheel holds. A change outside the wheel gives an equal wheel.
    """
    if not (folder / "pyproject.toml").is_file():
        raise UsageError(
            f"preparing a detector: {folder} has no pyproject.toml",
            hint="a detector is a folder <name>/ with <name>.py, pyproject.toml, test_<name>.py and README.md",
        )
    return _digest(_library_digest(), *_contents(folder))


def normalised(name: str) -> str:
    """The name of a distribution in the one form that installers compare."""
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def _library_digest() -> str:
    return _digest(sys.version, BUILD_CONSTRAINTS.read_text("utf-8"), *_contents(_SOURCES))


def _library() -> Wheel:
    """The library's wheel, built once for all detectors."""
    home = cache_path("parts", f"{LIBRARY}-library-{_library_digest()}")
    return Wheel.within(uv.made_once(home, lambda stage: _build(_SOURCES, stage, "building the library's wheel")))


def _build(source: Path, target: Path, doing: str) -> None:
    # without isolation: the build back end is the one that is locked and installed here
    python = ("--no-build-isolation", "--python", sys.executable)
    uv.uv(doing, "build", "--wheel", *python, "-o", str(target), str(source))


def _lock_of(name: str, wheel: Wheel | None, library: Wheel) -> str:
    """What the two wheels need, in the versions of `runtime.txt` as far as it names them; without one, the library.

    The detector chooses the version of what it declares itself, unless the library declares it too.
    """
    chosen = requirements_of(wheel) - requirements_of(library, "job") if wheel is not None else set[str]()
    runtime = constraints_without(RUNTIME.read_text("utf-8"), chosen)
    constraints = (runtime, BUILD_CONSTRAINTS.read_text("utf-8"))
    home = cache_path(
        "locks", f"{name}-{_digest(*(w.sha256 for w in (wheel, library) if w is not None), *constraints, sys.version)}"
    )

    def make(stage: Path) -> None:
        stage.mkdir()
        with tempfile.TemporaryDirectory() as given:
            required, constrained = Path(given, "required.in"), Path(given, "constraints.txt")
            constrained.write_text(runtime, "utf-8")
            needed = [f"{LIBRARY}[job] @ {library.write(Path(given)).as_uri()}\n"]  # even if a detector lacks it
            own = [] if wheel is None else ["--no-emit-package", wheel.distribution]
            if wheel is not None:
                needed.append(f"{wheel.distribution} @ {wheel.write(Path(given)).as_uri()}\n")
            required.write_text("".join(needed))
            options = [
                *("--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url"),
                *("--no-emit-package", LIBRARY, *own, "--python", sys.executable),
                *("--constraint", str(constrained), "--build-constraints", str(BUILD_CONSTRAINTS)),
            ]
            what = name if wheel is None else f"detector {name}"
            doing = f"locking the dependencies of {what}"
            uv.uv_offline_first(doing, "pip", "compile", *options, "-o", str(stage / "lock.txt"), str(required))

    return (uv.made_once(home, make) / "lock.txt").read_text("utf-8")


def requirements_of(wheel: Wheel, extra: str = "") -> set[str]:
    """The normalised names of the distributions that a wheel requires in this Python, with those of an `extra`."""
    with zipfile.ZipFile(io.BytesIO(wheel.content)) as held:
        [file] = [name for name in held.namelist() if name.endswith(".dist-info/METADATA")]
        declared = message_from_string(held.read(file).decode()).get_all("Requires-Dist", [])
    required = map(Requirement, declared)
    return {normalised(r.name) for r in required if r.marker is None or r.marker.evaluate({"extra": extra})}


def constraints_without(constraints: str, names: Collection[str]) -> str:
    """The text of a requirements file without the entries of `names`."""
    kept, take = [], True
    for line in constraints.splitlines(keepends=True):
        if line[:1].isalnum():
            take = normalised(line.partition("==")[0].strip()) not in names
        if take:
            kept.append(line)
    return "".join(kept)


def _contents(folder: Path) -> Iterator[str]:
    """Name and digest of each file below `folder` that a build may look at, in order."""
    for file in source_files(folder):
        yield f"{file.relative_to(folder)}:{hashlib.sha256(file.read_bytes()).hexdigest()}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode(errors="surrogateescape")).hexdigest()[:12]
