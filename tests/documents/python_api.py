"""The reference of what an author imports: `lozenge` and `lozenge.testing`, from signatures and docstrings."""

import ast
import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import lozenge
import lozenge.testing
from tests.documents.declared_fields import DeclaredField, declared_fields
from tests.documents.page import Page, table


def reference() -> str:
    """A section per module, with one per name."""
    return "\n".join(line for module in (lozenge, lozenge.testing) for line in _module(module))


def _module(module: ModuleType) -> Iterator[str]:
    yield f"## `{module.__name__}`"
    yield ""
    for name in module.__all__:
        yield from _name(module, name)


def _name(module: ModuleType, name: str) -> Iterator[str]:
    value = getattr(module, name)
    yield f"### `{name}`"
    yield ""
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        yield from (variable_text(module, name), "")
        return
    yield from ("```python", declaration(value), "```", "", inspect.cleandoc(value.__doc__ or ""), "")
    if inspect.isclass(value):
        yield from _members(value)


def declaration(value: Any) -> str:
    """The head of a function or class, as its source has it; with its defaults, without its body."""
    source = inspect.getsource(value)
    [node] = ast.parse(inspect.cleandoc("\n" + source)).body
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        return f"class {node.name}" + (f"({bases})" if bases else "")
    assert isinstance(node, ast.FunctionDef)
    returned = f" -> {_annotation(node.returns)}" if node.returns else ""
    arguments = list(_arguments(node.args))
    head = f"def {node.name}({', '.join(arguments)}){returned}"
    return (
        head
        if len(head) <= 100
        else "\n".join([f"def {node.name}(", *(f"    {each}," for each in arguments), f"){returned}"])
    )


def _arguments(arguments: ast.arguments) -> Iterator[str]:
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [*[None] * (len(plain) - len(arguments.defaults)), *arguments.defaults]
    for argument, default in zip(plain, defaults, strict=True):
        yield _argument(argument, default)
    if arguments.vararg or arguments.kwonlyargs:
        yield f"*{_argument(arguments.vararg, None)}" if arguments.vararg else "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _argument(argument, default)
    if arguments.kwarg:
        yield f"**{_argument(arguments.kwarg, None)}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    text = argument.arg + (f": {_annotation(argument.annotation)}" if argument.annotation else "")
    return text if default is None else f"{text} = {ast.unparse(default)}"


def _annotation(expression: ast.expr) -> str:
    """An annotation without the quotes of one that is evaluated late."""
    return ast.unparse(expression).replace("'", "").replace('"', "")


def _members(owner: type) -> Iterator[str]:
    fields = [field for field in declared_fields(owner) if not field.name.startswith(("_", "model_config"))]
    if fields:
        described = any(field.text for field in fields)
        heads = ("field", "type", "default", "meaning")[: None if described else 3]
        yield table(heads, (_row(field)[: len(heads)] for field in fields))
    for name, member in vars(owner).items():
        is_property = isinstance(member, property)
        if name.startswith("_") or not (is_property or inspect.isfunction(member)) or not member.__doc__:
            continue
        head = f"`{name}`" if is_property else f"`{declaration(member).removeprefix('def ')}`"
        yield f"- {head}: {' '.join(inspect.cleandoc(member.__doc__).split())}"
    yield ""


def _row(field: DeclaredField) -> tuple[str, str, str, str]:
    kind = field.type.replace("'", "")
    default = {"field(default_factory=dict)": "{}"}.get(field.default, field.default)
    return f"`{field.name}`", f"`{kind}`", f"`{default}`" if default else "", field.text


def variable_text(module: ModuleType, name: str) -> str:
    """The string below the assignment of a module's variable, where it is assigned."""
    home = _home(module, name)
    body = ast.parse(inspect.getsource(home)).body
    for statement, following in zip(body, [*body[1:], None], strict=True):
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            text = following.value if isinstance(following, ast.Expr) else None
            return inspect.cleandoc(str(text.value)) if isinstance(text, ast.Constant) else ""
    return ""


def _home(module: ModuleType, name: str) -> ModuleType:
    """The module that assigns `name`, which `module` hands on."""
    for home, names in getattr(module, "_HOME", {}).items():
        if name in names:
            return importlib.import_module(f"{module.__name__}.{home}")
    for statement in ast.parse(inspect.getsource(module)).body:
        if isinstance(statement, ast.ImportFrom) and name in {alias.name for alias in statement.names}:
            return importlib.import_module(str(statement.module))
    return module


PAGE = Page("docs/reference/python.md", reference)
