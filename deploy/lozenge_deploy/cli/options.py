"""What the verbs have in common: which detector is meant, and how answers are printed."""

import json
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from lozenge.errors import UsageError


class Format(StrEnum):
    """How an answer is printed: for a person, with every column, or for a program."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"


DEBUG = Annotated[bool, typer.Option("--debug", help="Show the stack of an error.")]
NAME = Annotated[str, typer.Argument(metavar="NAME", help="A detector; `.` is the folder you stand in.")]
OUTPUT = Annotated[Format, typer.Option("-o", "--output", help="How to print.")]


def detectors_folder() -> Path:
    """The folder `detectors` of the checkout that one stands in; raises UsageError outside of one."""
    here = Path.cwd()
    for place in (here, *here.parents):
        if (place / "detectors").is_dir() and (place / "pyproject.toml").is_file():
            return place / "detectors"
        if place.name == "detectors" and any(place.glob("*/pyproject.toml")):
            return place
    raise UsageError(
        f"looking for detectors: {here} lies in no checkout with a folder detectors/",
        hint="change into the checkout, or name the detector by the path of its folder",
    )


def folder_of(name: str) -> Path:
    """The folder of the detector `name`: a name, `.`, or a path; raises UsageError if there is none."""
    folder = Path(name).resolve() if name == "." or "/" in name else detectors_folder() / name
    if not (folder / "pyproject.toml").is_file():
        raise UsageError(
            f"looking for detector {name}: {folder} has no pyproject.toml",
            hint=f"`lozenge new {folder.name}` writes one; `lozenge status` lists what there is",
        )
    return folder


def app_of(name: str) -> str:
    """The app that is meant: `.` and paths stand for the folder's; nothing has to be there."""
    return Path(name).resolve().name if name == "." or "/" in name else name


def show(rows: Sequence[Mapping[str, Any]], how: Format, *, brief: Sequence[str] | None = None) -> None:
    """Prints `rows` as a table of the columns `brief` (all of them in wide), or as JSON."""
    if how is Format.JSON:
        json.dump(rows, sys.stdout, indent=1, default=str)
        print()
        return
    from rich.console import Console
    from rich.table import Table

    columns = list(brief if brief and how is Format.TABLE else rows[0] if rows else ())
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        numeric = all(isinstance(row[column], int | float) for row in rows)
        table.add_column(column, justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(_text(row[column]) for column in columns))
    Console(markup=False).print(table)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return json.dumps(value, default=str) if isinstance(value, dict | list) else str(value)
