"""What the Python files of a folder import: modules that a release has, by names that Python finds there."""

import ast
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from lozenge.detector.package import is_detector
from lozenge_deploy.releases.build import normalised
from lozenge_deploy.releases.lint.names import job_modules
from lozenge_deploy.releases.lint.wheel import WheelContents


def import_problems(
    file: Path, tree: ast.Module, contents: WheelContents, dependencies: Collection[str]
) -> Iterator[str]:
    """Imports of a file that fail in a release, with their lines, and what to write.

    `dependencies` are the normalised names of the distributions that the detector declares.
    """
    folder = contents.folder
    for node in outside_of_try(tree):
        match node:
            case ast.Import():
                for alias in node.names:
                    found = _absolute(folder, alias.name, dependencies)
                    excluded = _excluded(file, contents, folder.joinpath(*_parts(folder, alias.name)))
                    yield from _said(node.lineno, excluded, found)
            case ast.ImportFrom(level=0, module=str(module)):
                found = _absolute(folder, module, dependencies)
                excluded = _excluded(file, contents, folder.joinpath(*_parts(folder, module)), *_names(node))
                yield from _said(node.lineno, excluded, found)
            case ast.ImportFrom(level=level, module=module):
                package = file.parents[level - 1] if level <= len(file.parents) else Path("/")
                found = _relative(folder, package, f"{'.' * level}{module or ''}", module)
                imported = package.joinpath(*(module or "").split("."))
                yield from _said(node.lineno, _excluded(file, contents, imported, *_names(node)), found)


def outside_of_try(node: ast.AST) -> Iterator[ast.AST]:
    """Every node but those within try, where an import may fail on purpose."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.Try):
            yield child
            yield from outside_of_try(child)


def is_of_release(file: Path, contents: WheelContents) -> bool:
    """Whether a job may run the file: a release has it, and its name is not one that only pytest imports."""
    of_pytest = file.name == "conftest.py" or file.name.startswith("test_")
    return not of_pytest and file.relative_to(contents.folder).as_posix() in contents.files


def _said(line: int, excluded: str, found: str) -> Iterator[str]:
    if excluded or found:
        yield f"line {line}: {excluded or found}"


def _names(node: ast.ImportFrom) -> list[str]:
    return [alias.name for alias in node.names]


def _absolute(folder: Path, module: str, dependencies: Collection[str]) -> str:
    top, _, rest = module.partition(".")
    if top == folder.name:
        return f"{module} is not in the folder" if rest and not _is_module(folder, rest) else ""
    if top in sys.stdlib_module_names:
        return ""
    if _is_module(folder, top):
        if top in job_modules() or normalised(top) in dependencies:
            return ""  # the folder is a package: what is in it hides nothing
        advice = f"the folder is the package {folder.name}: write `from .{module} import ...`"
        return f"{advice}, or rename {top} if one of `dependencies` is meant" if dependencies else advice
    if is_detector(folder.parent / top):
        return f"{top} is another detector, which this one's environment does not have"
    return ""


def _relative(folder: Path, package: Path, written: str, module: str | None) -> str:
    if not package.is_relative_to(folder):
        return f"{written} is outside of the folder, which is all that a release has"
    return f"{written} is not in the folder" if module is not None and not _is_module(package, module) else ""


def _parts(folder: Path, module: str) -> list[str]:
    """The names below the folder that an absolute import means, whether or not it begins with that of the package."""
    parts = module.split(".")
    return parts[1:] if parts[0] == folder.name else parts


def _excluded(file: Path, contents: WheelContents, imported: Path, *names: str) -> str:
    """That no release has the module `imported`, or one of `names` in it, though the folder has; "" otherwise."""
    folder = contents.folder
    if not is_of_release(file, contents):
        return ""
    for path in (imported, *(imported / name for name in names)):
        for place in (path.with_name(f"{path.name}.py"), path) if path != folder and path.name else ():
            if place.is_relative_to(folder) and contents.excludes(place.relative_to(folder).as_posix()):
                return contents.said_of(place.relative_to(folder).as_posix())
    return ""


def _is_module(package: Path, module: str) -> bool:
    path = package.joinpath(*module.split("."))
    binary = any(path.parent.glob(f"{path.name}.*.so")) if path.parent.is_dir() else False
    return path.with_name(f"{path.name}.py").is_file() or (path.is_dir() and any(path.rglob("*.py"))) or binary
