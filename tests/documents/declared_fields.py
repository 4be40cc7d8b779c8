"""The fields of a class as its source declares them: name, type, default and the text below each."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class DeclaredField:
    """One annotated name of a class body; `default` is its expression, "" for none."""

    name: str
    type: str
    default: str
    text: str


def declared_fields(owner: type) -> Iterator[DeclaredField]:
    """The public fields of `owner`, in their order; a string below a field describes it."""
    [declaration] = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(declaration, ast.ClassDef)
    for statement, following in zip(declaration.body, [*declaration.body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            default = ast.unparse(statement.value) if statement.value else ""
            yield DeclaredField(statement.target.id, ast.unparse(statement.annotation), default, _text(following))


def _text(statement: ast.stmt | None) -> str:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return inspect.cleandoc(str(statement.value.value))
    return ""
