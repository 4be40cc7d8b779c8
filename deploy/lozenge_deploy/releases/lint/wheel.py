"""What the wheel of a folder would hold, by the build back end itself and without building it."""

import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hatchling.builders.wheel import WheelBuilder

from lozenge.detector.manifest import value_at
from lozenge_deploy.releases import build
from lozenge_deploy.releases.source_files import VIRTUAL_ENVIRONMENT, source_files

_SHOWN = 5
_PIECE = 1 << 20


@dataclass(frozen=True)
class WheelContents:
    """The files of a wheel by their path in the folder; none are known if it is `refused`, in the back end's words."""

    folder: Path
    files: Mapping[str, Path] = field(default_factory=dict)
    refused: str = ""

    def excludes(self, path: str) -> bool:
        """Whether `path` is a file or folder here that no release has, since the options of each wheel exclude it."""
        if self.refused or not _is_excluded(self.folder.name, path):
            return False
        place = self.folder / path
        if os.path.isdir(place):
            return not any(file.startswith(f"{path}/") for file in self.files)
        return os.path.isfile(place) and path not in self.files

    def said_of(self, path: str) -> str:
        """That no release has `path`, and what to do."""
        return (
            f"no release has {path}: tests/, conftest.py, test_{self.folder.name}.py, README.md and names that begin "
            "with a dot stay out of its wheel; what a job needs goes elsewhere in the folder"
        )


def contents_of(folder: Path) -> WheelContents:
    """What the wheel of `folder` would hold; hooks and options of the back end count."""
    try:
        builder = WheelBuilder(str(folder))
        builder.metadata.validate_fields()
        held = {file.distribution_path: Path(file.path) for file in builder.recurse_included_files()}
    except Exception as error:  # the classes of its errors are its own affair
        return WheelContents(folder, refused=str(error))
    package = f"{folder.name}/"
    return WheelContents(folder, {path.removeprefix(package): held[path] for path in held if path.startswith(package)})


def wheel_problems(contents: WheelContents, project: dict[str, Any]) -> Iterator[str]:
    """What the build would refuse, files that the wheel would lack, and a wheel that is too large."""
    if contents.refused:
        yield f"pyproject.toml: the build back end refuses it: {contents.refused}"
        return
    folder, held = contents.folder, contents.files
    files = [file.relative_to(folder).as_posix() for file in source_files(folder)]
    lacking = [file for file in files if not (_is_excluded(folder.name, file) or _is_built(file) or file in held)]
    if lacking:
        places = {file.resolve(): path for path, file in held.items()}
        twice = {file: place for file in lacking if (place := places.get((folder / file).resolve()))}
        for file, place in [*twice.items()][:1]:
            yield f"{file}: the wheel has it only as {place}, since it takes a linked folder once: copy it, or use one"
        lacking = [file for file in lacking if file not in twice]
    if lacking:
        more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
        yield (
            f"pyproject.toml: the wheel would lack {', '.join(lacking[:_SHOWN])}{more}: "
            f"[tool.hatch.build.targets.wheel] must be {wheel_options(folder.name)}"
        )
    for file in held:
        if file.endswith(f"/{VIRTUAL_ENVIRONMENT}"):
            place = file.rpartition("/")[0]
            yield f"{place}/: a release would hold this virtual environment: remove it, or call it .venv"
    for path in _table_paths(project):
        if (folder / path).exists() and not any(file == path or file.startswith(f"{path}/") for file in held):
            yield (
                f"{path}: no release has it, though [tool.lozenge.tables] names it: put it into the folder, not into "
                "tests/ and not under a name that begins with a dot, or name it by an absolute path that every host has"
            )
    yield from _too_large(held)


def wheel_options(name: str) -> str:
    """The options of the build back end with which the wheel of the detector `name` holds its folder as a package."""
    kept = ", ".join(f'"{pattern}"' for pattern in (".*", "/README.md", "/conftest.py", f"/test_{name}.py", "/tests"))
    return f'include = ["*"], exclude = [{kept}], sources = {{ "" = "{name}" }}, ignore-vcs = true'


def _is_excluded(name: str, path: str) -> bool:
    """Whether `wheel_options` exclude a path: the documents, the tests, and what begins with a dot."""
    parts = path.split("/")
    hidden = any(part.startswith(".") for part in parts)
    return hidden or parts[0] == "tests" or path in ("README.md", "conftest.py", f"test_{name}.py")


def _is_built(path: str) -> bool:
    return path.startswith("dist/") and path.endswith((".whl", ".tar.gz"))


def _table_paths(project: dict[str, Any]) -> Iterator[str]:
    """The relative paths of the declared tables, as they are in the folder."""
    for table in (value_at(project, "tool", "lozenge", "tables") or {}).values():
        if table.get("path") and not os.path.isabs(table["path"]):
            yield os.path.normpath(table["path"])


def _too_large(files: Mapping[str, Path]) -> Iterator[str]:
    """That the wheel would be, with its largest file; files are compressed only if they might be too large."""
    sizes = {path: file.stat().st_size for path, file in files.items()}
    if sum(sizes.values()) <= build.LARGEST_WHEEL:
        return
    total, largest = 0, sorted(sizes, key=lambda path: -sizes[path])
    for path in largest:
        for size in _compressed(files[path]):
            total += size
            if total > build.LARGEST_WHEEL:
                most = build.LARGEST_WHEEL / 1e6
                yield (
                    f"{largest[0]}: has {sizes[largest[0]] / 1e6:.1f} MB, and the wheel would have more than the "
                    f"{most:g} MB that are kept in a release: {build.SMALLER}"
                )
                return


def _compressed(file: Path) -> Iterator[int]:
    """The bytes that each piece of a file takes in a wheel."""
    compressor = zlib.compressobj()
    with file.open("rb") as content:
        while piece := content.read(_PIECE):
            yield len(compressor.compress(piece))
    yield len(compressor.flush())
