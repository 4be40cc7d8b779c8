"""Files next to a module whose paths are written in it, and that no release has."""

import ast
import os
from collections.abc import Iterator
from pathlib import Path

from lozenge_deploy.releases.lint.imports import is_of_release
from lozenge_deploy.releases.lint.wheel import WheelContents

_JOINING = ("joinpath", "join", "with_name", "Path")
"""Functions that make a path of the texts that they are called with."""


def data_problems(file: Path, tree: ast.Module, contents: WheelContents) -> Iterator[str]:
    """Paths in the text of a module that name a file of the folder, or a folder of it, which stays out of the wheel.

    A path is a text, or texts that are joined; it is seen from the module or from the folder. What a module looks for
    within try may be missing on purpose.
    """
    if not is_of_release(file, contents):
        return
    for line, written, joined in _paths(tree):
        for base in (file.parent, contents.folder):
            path = Path(os.path.normpath(base / written))
            inside = path != contents.folder and path.is_relative_to(contents.folder)
            name = path.relative_to(contents.folder).as_posix() if inside else ""
            if inside and contents.excludes(name) and (joined or os.path.isfile(path)):
                yield f"line {line}: {contents.said_of(name)}"
                break


def _paths(node: ast.AST) -> Iterator[tuple[int, str, bool]]:
    """Line and text of each path below a node, and whether it is joined to another one, as a word is not."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Try) or (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
            continue
        yield from _paths_of(child)


def _paths_of(node: ast.AST) -> Iterator[tuple[int, str, bool]]:
    match node:
        case ast.Constant(value=str(text)):
            yield node.lineno, text, False
        case ast.BinOp(op=ast.Div(), right=right) if _text(right):
            texts: list[str] = []
            rest: ast.expr = node
            while isinstance(rest, ast.BinOp) and isinstance(rest.op, ast.Div) and (text := _text(rest.right)):
                texts.insert(0, text)
                rest = rest.left
            yield node.lineno, os.path.join(*texts), True
            yield from _paths_of(rest)
        case ast.Call() if _called(node) in _JOINING and any(map(_text, node.args)):
            texts = [text for text in map(_text, node.args) if text]
            yield node.lineno, os.path.join(*texts), True
            for further in (node.func, *(each for each in node.args if not _text(each))):
                yield from _paths_of(further)
        case _:
            yield from _paths(node)


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
