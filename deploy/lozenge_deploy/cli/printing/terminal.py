"""The one way to a terminal. Characters that would act on it, or hide what is there, are written as escapes.

A record, a log line, a name or an error may hold what anybody wrote: sequences that clear the screen, set its title or
its clipboard, write a false line, or reverse the direction of a text. All commands print by the functions here, so
that such a character is read, not obeyed. JSON escapes everything outside of ASCII.

Card numbers and secrets are hidden here too, whatever comes: only a command that has recorded it prints with
`card_numbers`.
"""

import json
import math
import sys
import unicodedata
from collections.abc import Iterable
from typing import Any

import typer

from lozenge.contracts.display_text import shown, shown_data


def visible(text: str, *, lines: bool = False) -> str:
    """`text` with `\\x1b` for the escape character, and so on; with `lines` it keeps its line breaks and tabs."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or unicodedata.category(c) == "Zs" or (lines and c in "\n\t") else _escape(c) for c in text
    )


def echo(sentence: str, *, err: bool = False) -> None:
    """Prints lines of a command's own; what they quote must have no line break, or it looks like one of them."""
    typer.echo(visible(shown(sentence), lines=True), err=err)


def json_text(value: Any, *, indent: int | None = None, ascii_only: bool = True, card_numbers: bool = False) -> str:
    """JSON that every parser reads: NaN and infinity, which JSON does not have, are texts."""
    value = value if card_numbers else shown_data(value)
    try:
        text = json.dumps(value, indent=indent, default=str, ensure_ascii=ascii_only, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), indent=indent, default=str, ensure_ascii=ascii_only)
    return text.replace("\x7f", "\\u007f")


def print_json(value: Any, *, indent: int | None = 1, card_numbers: bool = False) -> None:
    """Prints a document; without `indent` in one line."""
    typer.echo(json_text(value, indent=indent, card_numbers=card_numbers))


def print_csv(values: Iterable[Any]) -> None:
    """Prints a line of CSV; lists and dictionaries are JSON in it."""
    import csv
    import io

    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(
        json_text(value, ascii_only=False) if isinstance(value, dict | list) else shown_data(value) for value in values
    )
    typer.echo(visible(out.getvalue(), lines=True))


def clear() -> None:
    """Clears a terminal, and nothing else."""
    if sys.stdout.isatty():
        typer.echo("\x1b[H\x1b[2J", nl=False)  # cursor home, clear the screen


def never_fail_to_encode() -> None:
    """A character that a stream's encoding lacks is written as an escape from now on."""
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
