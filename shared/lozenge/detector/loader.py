"""Finding a detector: the one installed in this environment, or the one in a folder."""

import importlib
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from lozenge.detector import package
from lozenge.detector.definition import Detector
from lozenge.detector.input_stream import stream_of
from lozenge.detector.manifest import Manifest, read
from lozenge.errors import DetectorError
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.project import Streams

GROUP = "lozenge.detectors"
_NEED_SESSION = ("get_active_spark_context", "_invoke_function", "active")
"""Functions of PySpark that fail without a session."""


@dataclass(frozen=True)
class LoadedDetector:
    """A detector with everything that travels with it; `folder` holds its declaration and tables."""

    name: str
    version: str
    detector: Detector[Any]
    declaration: Manifest
    folder: Path
    stream: StreamDefinition

    @property
    def key(self) -> str:
        """The entity of its alerts, and the key of its input topic."""
        return self.stream.key(self.declaration.key)

    @property
    def key_column(self) -> str:
        """The event column that its input topic is keyed by."""
        return self.stream.column(self.key)


def find(which: str | None) -> LoadedDetector:
    """What a command's argument means: a path is a source folder, anything else an installed detector."""
    return from_folder(Path(which).resolve()) if which and os.sep in which else installed(which)


def installed(name: str | None = None) -> LoadedDetector:
    """The detector installed in this environment; `name` is needed only where there are several."""
    found = {point.name: point for point in entry_points(group=GROUP)}
    if name is None and len(found) == 1:
        name = next(iter(found))
    if name is None or name not in found:
        have = ", ".join(sorted(found)) or "none"
        raise DetectorError(
            f"looking for detector {name or '(the only one)'}: this environment has {have}",
            hint=f"install its wheel here, or name one of those, or a source folder: detectors/{name or 'NAME'}",
        )
    point = found[name]
    with _importing(name):
        detector = point.load()
    return _loaded(name, detector, importlib.import_module(point.module))


def from_folder(folder: Path) -> LoadedDetector:
    """The detector in a source folder `<name>/<name>.py`; the folder is imported as the package `<name>`."""
    name = folder.name
    file = folder / f"{name}.py"
    if not file.is_file():
        raise DetectorError(
            f"looking for detector {name}: {file} does not exist",
            hint="a detector is a folder <name>/ with <name>.py, pyproject.toml, test_<name>.py and README.md",
        )
    package.provide(folder)
    before = list(sys.modules)
    try:
        with _importing(name):
            module = importlib.import_module(package.main_module(name))
    except DetectorError:
        package.forget(name, keep=before)
        raise
    return _loaded(name, getattr(module, "detector", None), module)


def _loaded(name: str, detector: object, module: ModuleType) -> LoadedDetector:
    if not isinstance(detector, Detector):
        raise DetectorError(
            f"loading detector {name}: its module has no `detector = Detector(...)`",
            hint="end the module with detector = Detector(detect, settings=YourSettings)",
        )
    folder = Path(str(module.__file__)).parent
    file = folder / "pyproject.toml"
    if not file.is_file():
        raise DetectorError(
            f"loading detector {name}: its declaration {file} is not there",
            hint="include the whole folder in the wheel; see any detector's pyproject.toml",
        )
    declared, version, declaration = read(file)
    if declared != name:
        raise DetectorError(
            f"loading detector {name}: its pyproject.toml calls it {declared}",
            hint="folder, module, project name and entry point are one and the same name",
        )
    return LoadedDetector(
        name, version, detector, declaration, folder, stream_of(declaration, Streams.load(folder), str(file))
    )


@contextmanager
def _importing(name: str) -> Iterator[None]:
    """Raises DetectorError for whatever the block raises, and for a session of Spark that it has started."""
    before = _session()
    try:
        yield
    except (Exception, SystemExit) as error:
        raise _import_failed(name, error) from error
    if before is None and (started := _session()) is not None:
        started.stop()
        raise DetectorError(
            f"importing detector {name}: it starts Spark itself, without what the platform needs of a session",
            hint="remove SparkSession.builder...getOrCreate(); in detect(), events.sparkSession is the session",
        )


def _session() -> Any:
    """Spark's session in this process; None if there is none. It does not import PySpark."""
    sql = sys.modules.get("pyspark.sql")
    return sql.SparkSession.getActiveSession() if sql is not None else None


def _import_failed(name: str, error: BaseException) -> DetectorError:
    hint = "fix the module, or add the missing package to the detector's dependencies"
    if isinstance(error, ModuleNotFoundError) and error.name and package.has_module(name, error.name):
        hint = f"the folder is the package {name}: write `from .{error.name} import ...`"
    frames = traceback.extract_tb(error.__traceback__)
    if any(frame.name in _NEED_SESSION and "pyspark" in frame.filename for frame in frames):
        hint = "Spark is not there yet when the module is imported: build columns, such as F.lit(...), in detect()"
    return DetectorError(f"importing detector {name}: {type(error).__name__}: {error}", hint=hint)
