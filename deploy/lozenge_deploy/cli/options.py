"""What the verbs have in common: which detector is meant, and how answers are printed."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lozenge.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table


class Format(StrEnum):
    """How an answer is printed: for a person, with every column, or for a program."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"


UNBOUNDED = 10_000


def _names(incomplete: str) -> list[str]:
    """The detectors of this checkout, for the shell to complete."""
    try:
        folders = {file.parent.name for file in detectors_folder().glob("*/pyproject.toml")}
    except UsageError:
        return []
    return sorted(name for name in folders if name.startswith(incomplete))


NAME = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A detector; `.` is the folder you stand in.", autocompletion=_names),
]
ALERT = Annotated[str, typer.Argument(metavar="ALERT_ID", help="An alert.")]
DEBUG = Annotated[bool, typer.Option("--debug", help="Show the stack of an error.")]
LAST = Annotated[str, typer.Option(help='How far back, such as "1h".')]
EXAMPLES = Annotated[int, typer.Option(min=0, help="How many alerts to show of each sort.")]
SET = Annotated[list[str] | None, typer.Option("--set", help="A setting: limit=250. Once per setting.")]
DRY_RUN = Annotated[bool, typer.Option("--dry-run", help="Only tell what would change.")]
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


def settings_of(texts: Sequence[str] | None, *, unset: bool = False) -> dict[str, Any]:
    """Name and value of each "name=value", JSON values as such; with `unset` "name=" is None. Raises UsageError."""
    settings: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not name or not equals or not (value or unset):
            raise UsageError(f"reading the setting {text}", hint="write it as name=value")
        try:
            settings[name] = json.loads(value) if value else None
        except json.JSONDecodeError:
            settings[name] = value
    return settings


def seconds_of(text: str, option: str) -> float:
    """The seconds that the value of `option` names; raises UsageError."""
    from lozenge.durations import duration

    try:
        seconds = duration(text).total_seconds()
    except ValueError as error:
        raise UsageError(f"reading {option}: {error}", hint=f'write it as {option} "10m"') from error
    if seconds < 0:
        raise UsageError(f"reading {option}: {text} is less than no time", hint=f'write it as {option} "10m"')
    return seconds


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
        numeric = all(isinstance(row[column], int | float | None) for row in rows)
        texts = (column, *(_text(row[column]) for row in rows))
        longest = max((len(word) for text in texts for word in text.split()), default=0)
        table.add_column(column, justify="right" if numeric else "left", min_width=longest)
    for row in rows:
        table.add_row(*(_text(row[column]) for column in columns))
    # nobody's terminal has a width: a line stays one line for whoever reads on
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else UNBOUNDED
    console = Console(markup=False, width=width)
    unbounded = console.options.update_width(UNBOUNDED)
    if console.measure(table, options=unbounded).minimum > console.width:  # it would cut words and, worse, numbers
        table = _upright([{column: row[column] for column in columns} for row in rows])
    console.print(table)


def tell(said: str, told: Mapping[str, Any], how: Format) -> None:
    """Prints one fact: as the sentence that says it, or as JSON."""
    if how is Format.JSON:
        show([told], how)
    else:
        typer.echo(said)


def _upright(rows: Sequence[Mapping[str, Any]]) -> "Table":
    """Each row as lines of names and values, for a terminal that is too narrow for all of them side by side."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for number, row in enumerate(rows):
        if number:
            table.add_row()
        for column, value in row.items():
            table.add_row(column, _text(value))
    return table


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return json.dumps(value, default=str) if isinstance(value, dict | list) else str(value)
