"""What the notifier answers, as a person reads it: times by the clock, labels as `name=value`."""

from datetime import UTC, datetime
from typing import Any

import typer

from lozenge_deploy.cli.options import Format, show


def show_readable(
    rows: list[dict[str, Any]],
    output: Format,
    empty: str,
    times: tuple[str, ...] = (),
    brief: tuple[str, ...] | None = None,
) -> None:
    """A table of `rows`, whose columns `times` hold Unix seconds; the sentence `empty` if there are none."""
    if not rows and output is not Format.JSON:
        typer.echo(empty, err=True)
        return
    show(rows if output is Format.JSON else [_readable(row, times) for row in rows], output, brief=brief)


def labels(of: dict[str, str]) -> str:
    """`name=value` of each."""
    return ", ".join(f"{name}={value}" for name, value in of.items())


def moment(at: float | None) -> str:
    """Unix seconds as a date and a time in UTC; "-" for never."""
    return "-" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"


def _readable(row: dict[str, Any], times: tuple[str, ...]) -> dict[str, Any]:
    listed = {name: ", ".join(value) or "-" for name, value in row.items() if isinstance(value, list)}
    paired = {name: labels(value) for name, value in row.items() if isinstance(value, dict)}
    return row | listed | paired | {name: moment(row[name]) for name in times}
