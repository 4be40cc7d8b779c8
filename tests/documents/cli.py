"""The reference of the `lozenge` command in `docs/cli.md`, from the command itself.

Exit codes and signals are written by hand.
"""

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from lozenge_deploy.cli.__main__ import app
from tests.documents.page import Page, cell

_COMMON = {"--help", "--debug", "--output", "--dry-run", "--message", "--wait", "--timeout"}
"""Options that the page explains once, above the verbs."""


def reference() -> str:
    """The generated part: a table of all verbs, then one section per verb."""
    root: Any = get_command(app)  # Typer's own classes ship without usable types
    verbs = list(_verbs(root, root.make_context("lozenge", [], resilient_parsing=True)))
    index = [f"| [`{context.command_path}`](#{_anchor(context)}) | {_first_line(verb)} |" for verb, context in verbs]
    sections = [line for verb, context in verbs for line in _section(verb, context)]
    return "\n".join(["| verb | what it does |", "|---|---|", *index, "", *sections])


def _verbs(command: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    """Each verb that can be run, with the context that knows its path; groups stand for their verbs."""
    for name, verb in command.commands.items():
        inner = verb.make_context(name, [], parent=context, resilient_parsing=True)
        if hasattr(verb, "commands"):
            yield from _verbs(verb, inner)
        else:
            yield verb, inner


def _anchor(context: Any) -> str:
    return str(context.command_path).replace(" ", "-")


def _first_line(verb: Any) -> str:
    return cell((verb.help or "").split("\n\n")[0])


def _section(verb: Any, context: Any) -> Iterator[str]:
    yield f"### {context.command_path}"
    yield ""
    yield (verb.help or "").strip()
    yield ""
    yield "```"
    yield " ".join([context.command_path, *verb.collect_usage_pieces(context)])
    yield "```"
    yield ""
    records = [parameter.get_help_record(context) for parameter in verb.params if _is_own(parameter)]
    rows = [f"| `{cell(names.strip())}` | {cell(text)} |" for names, text in filter(None, records)]
    if rows:
        yield from ["| argument or option | meaning |", "|---|---|", *rows, ""]
    common = [option for parameter in verb.params for option in parameter.opts if option in _COMMON - {"--help"}]
    if common:
        yield "Also " + ", ".join(f"`{option}`" for option in common) + "."
        yield ""


def _is_own(parameter: Any) -> bool:
    return not _COMMON.intersection(parameter.opts)


PAGE = Page("docs/cli.md", reference)
