"""`lozenge table`: tables of the platform, which are loaded from databases and lakes while detectors run."""

import time
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lozenge.errors import ConfigError, UsageError
from lozenge_deploy.cli.options import DRY_RUN, OUTPUT
from lozenge_deploy.cli.printing.output import OutputFormat, say, show, show_readable
from lozenge_deploy.cli.printing.terminal import echo
from lozenge_deploy.cli.sink.requests import make, show_history
from lozenge_deploy.cli.wait import MESSAGE

if TYPE_CHECKING:
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.platform_tables.definition import PlatformTable

app = typer.Typer(help="Tables of the platform: rows of a database or a lake, for detectors.", no_args_is_help=True)
NAME = Annotated[str, typer.Argument(metavar="NAME", help="A table: a folder of upstream/tables.")]
SKIP_SOURCE = Annotated[
    bool, typer.Option("--skip-source", help="Do not read the source first: this machine cannot reach it.")
]
_BRIEF = ("table", "state", "rows", "version", "good_seconds_ago", "used_by")


@app.command()
def check(name: NAME, output: OUTPUT = OutputFormat.TABLE) -> None:
    """Read the source of a table once, and say what would change, or all that is wrong. Nothing is written.

    Exit code 1: the version is refused or the source does not answer; 2: the declaration is wrong.
    """
    from lozenge.platform_tables.project import table_named
    from lozenge.streams.project import project_folder
    from lozenge_deploy.operations.declarations.tables import look_of, require_good

    doing = f"checking the table {name}"
    found = look_of(table_named(project_folder(), name), doing)
    if found["problems"] and output is OutputFormat.JSON:
        show([found], output)
    require_good(found, doing)
    say(f"{name}: {_change(found)}", found, output)


@app.command()
def deploy(
    name: NAME,
    message: MESSAGE = "",
    skip_source: SKIP_SOURCE = False,
    dry_run: DRY_RUN = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Release table.toml, and start the loader if none runs. A running one takes it after its present look.

    The source is read once first: a declaration with which it has no good version changes nothing, nor does one without
    a column that a deployed detector reads. Exit code 1: there is no good version; 2: the declaration is wrong.
    """
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.platform_tables.project import table_named
    from lozenge.streams.project import project_folder
    from lozenge_deploy.operations.declarations.tables import deployment_of
    from lozenge_deploy.operations.tables.table_readers import readers_of

    table = table_named(project_folder(), name)
    _look(table, f"deploying the table {name}", skip_source)
    readers = readers_of(KafkaSettings.load(), name)
    make(
        table.app,
        "deploy",
        lambda state: deployment_of(state, table, readers, message),
        {"reason": message},
        dry_run,
        output,
    )


@app.command()
def rollback(
    name: NAME,
    to: Annotated[str, typer.Option(help="A release such as r2; by default the one before.")] = "",
    skip_source: SKIP_SOURCE = False,
    dry_run: DRY_RUN = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Request an earlier release of a table. Its source is read once first, as by `deploy`; loaded rows stay."""
    from lozenge.apps import table_app
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.operations.declarations.tables import rollback_of
    from lozenge_deploy.operations.tables.table_readers import readers_of

    readers = readers_of(KafkaSettings.load(), name)

    def look(table: "PlatformTable", doing: str) -> None:
        _look(table, doing, skip_source)

    make(table_app(name), "rollback", lambda state: rollback_of(state, to, readers, look), {"to": to}, dry_run, output)


@app.command()
def history(name: NAME, output: OUTPUT = OutputFormat.TABLE) -> None:
    """List the releases of a table: who made each, when and why."""
    from lozenge.apps import table_app

    show_history(table_app(name), output)


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


def _look(table: "PlatformTable", doing: str, skip: bool) -> None:
    """Reads the source once, unless it is to be skipped; raises as `require_good` does."""
    from lozenge_deploy.operations.declarations.tables import look_of, require_good

    if not skip:
        require_good(look_of(table, doing), doing)


def _change(found: Mapping[str, Any]) -> str:
    change = f"{found['added']} added, {found['changed']} changed, {found['removed']} removed"
    return f"{found['rows']} rows; would be {change}"
