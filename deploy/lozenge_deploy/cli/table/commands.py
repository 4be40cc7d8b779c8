"""`lozenge table`: tables of the platform, which are loaded from databases and lakes while detectors run."""

import time
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lozenge.errors import ConfigError, LozengeError, UsageError
from lozenge_deploy.cli.options import OUTPUT
from lozenge_deploy.cli.printing.output import OutputFormat, say, show, show_readable
from lozenge_deploy.cli.printing.terminal import echo

if TYPE_CHECKING:
    from lozenge.kafka.settings import KafkaSettings

app = typer.Typer(help="Tables of the platform: rows of a database or a lake, for detectors.", no_args_is_help=True)
NAME = Annotated[str, typer.Argument(metavar="NAME", help="A table: a folder of upstream/tables.")]
_BRIEF = ("table", "state", "rows", "version", "good_seconds_ago", "used_by")


@app.command()
def check(name: NAME, output: OUTPUT = OutputFormat.TABLE) -> None:
    """Read the source of a table once, and say what would change, or all that is wrong. Nothing is written.

    Exit code 1: the version is refused or the source does not answer; 2: the declaration is wrong.
    """
    from lozenge.platform_tables.project import TABLES, table_named
    from lozenge.streams.project import project_folder
    from lozenge_deploy.operations.streams.upstream_tools import asked

    project = project_folder()
    table = table_named(project, name)
    table.address()  # a variable that is missing is missed here, and not in another process
    folder = str(project / TABLES / name)
    found = asked(f"checking the table {name}", "lozenge_upstream.tables.check_table", folder)
    if found["problems"]:
        if output is OutputFormat.JSON:
            show([found], output)
        raise LozengeError(
            "\n".join([f"checking the table {name}: its source is {found['state']}", *_listed(found["problems"])]),
            hint="nothing was written; the last good version stays",
        )
    change = f"{found['added']} added, {found['changed']} changed, {found['removed']} removed"
    say(f"{name}: {found['rows']} rows; would be {change}", found, output)


@app.command()
def ls(output: OUTPUT = OutputFormat.TABLE) -> None:
    """List the tables of the project and those that were loaded: state, rows, version, and which detectors use them."""
    from lozenge.detector.tables.declared_table import platform_tables_of
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.operations.lists.list_usage import users
    from lozenge_deploy.operations.tables.loaded import names

    kafka = KafkaSettings.load()
    known = sorted({*_declared(), *names(kafka)})
    rows = _rows(kafka, known, users(kafka, platform_tables_of)) if known else []
    if output is OutputFormat.JSON:
        show(rows, output)
    else:
        show_readable(rows, output, "there is no table; upstream/tables/NAME/table.toml declares one", brief=_BRIEF)


@app.command("show")
def show_(
    name: NAME,
    count: Annotated[int, typer.Option("-n", min=0, help="So many rows at most.")] = 20,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Show the version of a table that is in force, its first rows, and what is wrong with its source now."""
    from lozenge.apps import table_app
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.platform_tables.state import TableState
    from lozenge_deploy.observe.log_reader import LogReader
    from lozenge_deploy.operations.tables.loaded import loaded_table

    kafka = KafkaSettings.load()
    loaded = loaded_table(kafka, name)
    if loaded is None and name not in _declared():
        raise UsageError(f"showing the table {name}: there is none", hint="`lozenge table ls` lists all")
    [row] = _rows(kafka, [name], {})
    row.pop("used_by")
    errors = LogReader(kafka, table_app(name), "error").latest(1)[0] if row["state"] != TableState.GOOD else []
    row["problem"] = errors[-1]["event"] if errors else None
    first = loaded.first(count) if loaded is not None else []
    if output is OutputFormat.JSON:
        show([{**row, "first": first}], output)
        return
    echo(f"{name}: {row['state']}; {row['rows']} rows, version {row['version'] or 'none'}")
    if row["problem"]:
        echo(row["problem"])
    if first:
        show(first, output)


def _rows(kafka: "KafkaSettings", tables: list[str], used: Mapping[str, list[str]]) -> list[dict[str, Any]]:
    from lozenge.apps import table_app
    from lozenge_deploy.observe.metrics_reader import MetricsReader
    from lozenge_deploy.operations.tables.loaded import loaded_table
    from lozenge_deploy.operations.tables.report import table_row

    now = time.time()
    with closing(MetricsReader(kafka)) as metrics:
        metrics.catch_up()
        running = {name: found for name in tables if (found := metrics.table.get(table_app(name))) is not None}
        alive = {name: app.samples(now) for name, app in running.items() if app.alive(now)}
    return [table_row(name, loaded_table(kafka, name), alive.get(name, {}), used.get(name, []), now) for name in tables]


def _declared() -> list[str]:
    """The tables of the project here; none outside of a project."""
    from lozenge.platform_tables.project import names_in
    from lozenge.streams.project import project_folder

    try:
        return names_in(project_folder())
    except ConfigError:
        return []


def _listed(problems: list[str]) -> list[str]:
    from lozenge.errors import PROBLEM

    return [f"{PROBLEM}{problem}" for problem in problems]
