"""The folder of a detector is an import package of the detector's name; `<name>/<name>.py` is its main module.

A further module `features.py` is `<name>.features`, in the source folder as in the wheel. So two detectors may have
modules of the same name, and a module finds data next to it by `Path(__file__).with_name(...)`.
"""

import atexit
import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType


def main_module(name: str) -> str:
    """The import name of the main module of the detector `name`."""
    return f"{name}.{name}"


def is_detector(folder: Path) -> bool:
    """Whether `folder` has a main module and a declaration."""
    return (folder / f"{folder.name}.py").is_file() and (folder / "pyproject.toml").is_file()


def provide(folder: Path) -> None:
    """Makes `folder` importable as the package of its name, here and in the Python workers that Spark starts later.

    It replaces a package of this name, installed or of another folder. No other folder becomes importable.
    """
    name = folder.name
    loaded = sys.modules.get(name)
    if loaded is None or list(getattr(loaded, "__path__", ())) != [str(folder)]:
        forget(name, keep=())
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.folders[name] = folder
    importlib.invalidate_caches()
    _let_workers_import(folder)


def forget(name: str, *, keep: Sequence[str]) -> None:
    """Removes the modules of the package `name` except those of `keep`, so that they are imported again."""
    for module in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
        if module not in keep:
            del sys.modules[module]


def has_module(package: str, module: str) -> bool:
    """Whether the imported `package` has a module or a sub-package of this name."""
    folders = [Path(folder) for folder in getattr(sys.modules.get(package), "__path__", ())]
    return any((folder / f"{module}.py").is_file() or (folder / module).is_dir() for folder in folders)


class _FolderFinder(MetaPathFinder):
    """Finds packages by their folders; `sys.path` stays as it is."""

    def __init__(self) -> None:
        self.folders: dict[str, Path] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The package of one of the folders; the modules in it are found by its path."""
        if (folder := self.folders.get(fullname)) is None:
            return None
        if (file := folder / "__init__.py").is_file():
            return spec_from_file_location(fullname, file, submodule_search_locations=[str(folder)])
        spec = ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        return spec


_finder = _FolderFinder()


def _let_workers_import(folder: Path) -> None:
    """Spark's Python workers find functions by module name, on the path that they inherit: one link per package."""
    link = _links() / folder.name
    if not link.is_symlink() or link.readlink() != folder:
        link.unlink(missing_ok=True)
        link.symlink_to(folder)
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(link.parent) not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(link.parent), *filter(None, paths)])


@cache
def _links() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="lozenge-packages-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
