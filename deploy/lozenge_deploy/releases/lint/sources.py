"""The Python files of a folder: what they import and open, and what the main module defines."""

import ast
import symtable
import sys
from collections.abc import Iterator
from pathlib import Path

from lozenge.detector.package import is_detector
from lozenge_deploy.releases.lint.files import parsed
from lozenge_deploy.releases.source_files import source_files

_OPENERS = ("open", "Path", "load", "read_csv", "read_json", "read_parquet")
"""Functions whose first argument, if it is a relative path, is one from the current folder."""


def source_problems(folder: Path) -> Iterator[str]:
    """Files that do not parse, imports that no release has, and a main module without a detector."""
    main = f"{folder.name}.py"
    for file in source_files(folder):
        if file.suffix != ".py":
            continue
        name = file.relative_to(folder).as_posix()
        tree = parsed(file)
        found = [tree] if isinstance(tree, str) else [*_imports(folder, file, tree)]
        yield from (f"{name}: {problem}" for problem in found)
        if name == main and isinstance(tree, ast.Module) and not _defines_detector(file, tree):
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


def _imports(folder: Path, file: Path, tree: ast.Module) -> Iterator[str]:
    for node in _outside_of_try(tree):
        match node:
            case ast.Import():
                for alias in node.names:
                    yield from _absolute(folder, node.lineno, alias.name)
            case ast.ImportFrom(level=0, module=str(module)):
                yield from _absolute(folder, node.lineno, module)
            case ast.ImportFrom(level=level, module=module):
                yield from _relative(folder, file, node.lineno, level, module)


def _absolute(folder: Path, line: int, module: str) -> Iterator[str]:
    top, _, rest = module.partition(".")
    if top == folder.name:
        if rest and not _is_module(folder, rest):
            yield f"line {line}: {module} is not in the folder"
    elif top not in sys.stdlib_module_names and _is_module(folder, top):
        yield f"line {line}: the folder is the package {folder.name}: write `from .{module} import ...`"
    elif is_detector(folder.parent / top):
        yield f"line {line}: {top} is another detector, which this one's environment does not have"


def _relative(folder: Path, file: Path, line: int, level: int, module: str | None) -> Iterator[str]:
    package = file.parent
    for _ in range(level - 1):
        package = package.parent
    written = f"{'.' * level}{module or ''}"
    if not package.is_relative_to(folder):
        yield f"line {line}: {written} is outside of the folder, which is all that a release has"
    elif module is not None and not _is_module(package, module):
        yield f"line {line}: {written} is not in the folder"


def _is_module(package: Path, module: str) -> bool:
    path = package.joinpath(*module.split("."))
    binary = any(path.parent.glob(f"{path.name}.*.so")) if path.parent.is_dir() else False
    return path.with_name(f"{path.name}.py").is_file() or (path.is_dir() and any(path.rglob("*.py"))) or binary


def _outside_of_try(node: ast.AST) -> Iterator[ast.AST]:
    """Every node but those within try, where an import may fail on purpose."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.Try):
            yield child
            yield from _outside_of_try(child)


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
