"""The Python files of a folder: that a release has what they need, and what the main module defines."""

import ast
import symtable
from collections.abc import Collection, Iterator
from pathlib import Path

from lozenge_deploy.releases.lint.data_files import data_problems
from lozenge_deploy.releases.lint.files import parsed
from lozenge_deploy.releases.lint.imports import import_problems
from lozenge_deploy.releases.lint.wheel import WheelContents
from lozenge_deploy.releases.source_files import source_files

_OPENERS = ("open", "Path", "load", "read_csv", "read_json", "read_parquet")
"""Functions whose first argument, if it is a relative path, is one from the current folder."""


def source_problems(folder: Path, contents: WheelContents, dependencies: Collection[str]) -> Iterator[str]:
    """Files that do not parse, imports and data that no release has, and a main module without a detector.

    `contents` are those of the wheel, and `dependencies` the normalised names of what the detector declares.
    """
    main = f"{folder.name}.py"
    for file in source_files(folder):
        if file.suffix != ".py":
            continue
        name = file.relative_to(folder).as_posix()
        tree = parsed(file)
        if isinstance(tree, str):
            yield f"{name}: {tree}"
            continue
        yield from (f"{name}: {problem}" for problem in import_problems(file, tree, contents, dependencies))
        yield from (f"{name}: {problem}" for problem in data_problems(file, tree, contents))
        if name == main and not _defines_detector(file, tree):
            yield f"{name}: end it with detector = Detector(detect, settings=...)"
    if not (folder / main).is_file():
        yield f"{main}: missing"
    if (folder / folder.name / "__init__.py").is_file():
        yield f"{folder.name}/: rename it, or Python imports it in place of {main}"


def source_warnings(folder: Path) -> Iterator[str]:
    """Files of the folder that a module opens by a path relative to the current folder, which no job has.

    And windows that overlap: an event counts in several, so a burst raises an alert in each.
    """
    for file in source_files(folder):
        tree = parsed(file) if file.suffix == ".py" else ""
        for node in ast.walk(tree) if isinstance(tree, ast.Module) else ():
            if isinstance(node, ast.Call) and (path := _opened(node)) and (folder / path).is_file():
                yield (
                    f"{file.relative_to(folder)}: line {node.lineno} opens {path!r} in the current folder, which is "
                    "another one in a job: write Path(__file__).with_name(...) or Path(__file__).parent / ..."
                )
            if isinstance(node, ast.Call) and _slides(node):
                yield (
                    f"{file.relative_to(folder)}: line {node.lineno}: its windows overlap, so one burst raises an "
                    'alert in each of them: remove the slide, or count in a fold, kind = "stateful"'
                )


def settings_of(folder: Path) -> list[str]:
    """The names of the settings that its classes declare, with those of base classes in the folder."""
    fields: list[str] = []
    for file in source_files(folder):
        tree = parsed(file) if file.suffix == ".py" else ""
        if isinstance(tree, ast.Module):
            fields += _fields(tree)
    return list(dict.fromkeys(fields))


def _defines_detector(file: Path, tree: ast.Module) -> bool:
    """Whether the module gives a value to `detector`, in whatever way; a star import may."""
    stars = any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree))
    table = symtable.symtable(ast.unparse(tree), file.name, "exec")
    if "detector" not in table.get_identifiers():
        return stars
    symbol = table.lookup("detector")
    return stars or symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()


def _opened(call: ast.Call) -> str:
    """The path that a call opens, if it is written there and relative; "" otherwise."""
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    first = call.args[0] if call.args else None
    written = first.value if isinstance(first, ast.Constant) else None
    return written if name in _OPENERS and isinstance(written, str) and not Path(written).is_absolute() else ""


def _slides(call: ast.Call) -> bool:
    """Whether it is a `window` with a slide that is another text than its length."""
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    named = {each.arg: each.value for each in call.keywords}
    given = dict(zip(("timeColumn", "windowDuration", "slideDuration"), call.args, strict=False)) | named
    length, slide = given.get("windowDuration"), given.get("slideDuration")
    if name != "window" or length is None or slide is None:
        return False
    return ast.unparse(slide) not in (ast.unparse(length), "None")


def _fields(tree: ast.Module) -> Iterator[str]:
    """The fields of the classes that derive from `Settings`, by whatever name it was imported."""
    known = {"Settings"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            known |= {alias.asname for alias in node.names if alias.name == "Settings" and alias.asname}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and any(_last(base) in known for base in node.bases):
            known.add(node.name)
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and _is_field(field):
                    yield ast.unparse(field.target)


def _last(base: ast.expr) -> str:
    """The last part of a class's name, without its parameters."""
    return ast.unparse(base).partition("[")[0].rpartition(".")[2]


def _is_field(field: ast.AnnAssign) -> bool:
    name, kind = ast.unparse(field.target), ast.unparse(field.annotation)
    return not name.startswith("_") and name != "model_config" and "ClassVar" not in kind
