"""How answers are printed: tables, JSON, one sentence, the outcome of a backtest."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Any

from lozenge.contracts.display_text import shown_data
from lozenge.moments import from_milliseconds
from lozenge_deploy.cli.printing.terminal import echo, json_text, print_json, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


class OutputFormat(StrEnum):
    """How an answer is printed: for a person, with every column, or for a program."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"


UNLIMITED_WIDTH = 10_000
GAP = 2
"""Blanks between two columns."""
MOST_CHARACTERS = 1_000
"""Of a value in a table; `-o wide` and `-o json` show all of it."""


def show_warnings(warnings: Iterable[str]) -> None:
    """Prints each on a line of stderr."""
    for warning in warnings:
        echo(f"warning: {warning}", err=True)


def show(
    rows: Sequence[Mapping[str, Any]],
    how: OutputFormat,
    *,
    brief: Sequence[str] | None = None,
    card_numbers: bool = False,
) -> None:
    """Prints `rows` as a table of the columns `brief` (all of them in wide), or as JSON.

    With `card_numbers` it shows these too, and secrets: record that first.
    """
    if how is OutputFormat.JSON:
        print_json(rows, card_numbers=card_numbers)
        return
    from rich.cells import cell_len
    from rich.table import Table

    rows = rows if card_numbers else [shown_data(dict(row)) for row in rows]
    columns = list(brief if brief and how is OutputFormat.TABLE else dict.fromkeys(chain.from_iterable(rows)))
    cells = [{column: visible(_text(row.get(column), how)) for column in columns} for row in rows]
    table = Table(box=None, pad_edge=False, header_style="bold")
    widths: list[int] = []
    for column in columns:
        numeric = all(isinstance(row.get(column), int | float | None) for row in rows)
        texts = (column, *(row[column] for row in cells))
        longest = max((cell_len(word) for text in texts for word in text.split()), default=0)
        widths.append(longest)
        table.add_column(visible(column), justify="right" if numeric else "left", min_width=longest)
    for row in cells:
        table.add_row(*row.values())
    console = _console()
    if sum(widths) + GAP * (len(widths) - 1) > console.width:  # it would cut words and, worse, numbers
        table = _vertical(cells)
    console.print(table)


def show_fields(fields: Mapping[str, Any], how: OutputFormat, *, card_numbers: bool = False) -> None:
    """Prints one thing with all its fields, a line or more for each; or as JSON. `card_numbers` as for `show`."""
    if how is OutputFormat.JSON:
        print_json([fields], card_numbers=card_numbers)
        return
    fields = fields if card_numbers else shown_data(dict(fields))
    _console().print(_vertical([{name: visible(_text(value, how), lines=True) for name, value in fields.items()}]))


def say(sentence: str, row: Mapping[str, Any], how: OutputFormat) -> None:
    """Prints one result: the sentence for people, or `row` as JSON."""
    if how is OutputFormat.JSON:
        show([row], how)
    else:
        echo(sentence)


def _console() -> "Console":
    """Without a terminal there is no width: a row stays one line for the program that reads it."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else UNLIMITED_WIDTH
    return Console(markup=False, emoji=False, highlight=False, width=width)


def _vertical(rows: Sequence[Mapping[str, str]]) -> "Table":
    """Each row as lines of names and values, for a terminal that is too narrow for all columns."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for number, row in enumerate(rows):
        if number:
            table.add_row()
        for column, value in row.items():
            table.add_row(visible(column), value)
    return table


def _text(value: Any, how: OutputFormat) -> str:
    if value is None:
        return "-"
    text = json_text(value, ascii_only=False, card_numbers=True) if isinstance(value, dict | list) else str(value)
    if how is not OutputFormat.TABLE or len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]} ... ({len(text)} characters; -o wide shows all)"


def show_readable(
    rows: list[dict[str, Any]],
    output: OutputFormat,
    empty: str,
    times: tuple[str, ...] = (),
    brief: tuple[str, ...] | None = None,
) -> None:
    """A table of `rows`, whose columns `times` hold Unix seconds; the sentence `empty` if there are none."""
    if not rows and output is not OutputFormat.JSON:
        echo(empty, err=True)
        return
    show(rows if output is OutputFormat.JSON else [_readable(row, times) for row in rows], output, brief=brief)


def labels(of: dict[str, str]) -> str:
    """`name=value` of each."""
    return ", ".join(f"{name}={value}" for name, value in of.items())


def moment(at: float | None) -> str:
    """Unix seconds as a date and a time in UTC; "-" for never."""
    return "-" if at is None else f"{from_milliseconds(round(at * 1000)):%Y-%m-%d %H:%M:%S}"


def _readable(row: dict[str, Any], times: tuple[str, ...]) -> dict[str, Any]:
    listed = {name: ", ".join(value) or "-" for name, value in row.items() if isinstance(value, list)}
    paired = {name: labels(value) for name, value in row.items() if isinstance(value, dict)}
    return row | listed | paired | {name: moment(row[name]) for name in times}


def show_backtest(outcome: Mapping[str, Any], examples: int, output: OutputFormat) -> None:
    """One sentence, then at most `examples` alerts of each kind."""
    live = f"compared with {outcome['release']}" if outcome["release"] else "and no live release has emitted alerts"
    new, lost, dead = outcome["new"], outcome["lost"], outcome["dead_letters"]
    failed = f", {len(dead)} events failed" if dead else ""
    oldest = outcome["oldest"]
    since = f"{oldest} (no older one is retained)" if oldest else outcome["since"]
    echo(
        f"{outcome['alerts']} alerts of {outcome['events']} events since {since}: "
        f"{len(new)} new, {len(lost)} lost {live}{failed}"
    )
    rows = [{"": kind, **alert} for kind, alerts in (("new", new), ("lost", lost)) for alert in alerts[:examples]]
    if rows:
        show(rows, output, brief=("", "event_time", "entity", "reason"))
    for error in dead[:examples]:
        echo(f"failed: {visible(str(error))}")
    for note in outcome["notes"]:
        echo(f"note: {visible(str(note))}")


def show_cost(cost: Mapping[str, float | None], release: str | None) -> None:
    """One sentence on processor seconds per million events, compared with the live `release`, if any."""
    new, current, ratio = cost["new"], cost["current"], cost["ratio"]
    if new is None:
        sentence = "no event was processed"
    elif release is None:
        sentence = f"{new} processor seconds per million events; nothing is live to compare that with"
    elif current is None:
        sentence = f"{new} processor seconds per million events; none are known of {release}"
    else:
        sentence = f"{new} processor seconds per million events, {release} takes {current}: {ratio} times as much"
    echo(f"cost: {sentence}")
