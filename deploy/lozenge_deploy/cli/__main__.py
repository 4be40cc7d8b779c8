"""`lozenge` and `python -m lozenge_deploy.cli`.

Exit codes: 0 done, 1 failed, 2 usage or configuration error, 3 no broker, 124 `--timeout` expired, 130 Ctrl-C.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from lozenge.errors import LozengeError
from lozenge_deploy.cli import deploy, dlq, inspect, lifecycle, local, notify, routes, schemas
from lozenge_deploy.cli.archive import commands as archive
from lozenge_deploy.cli.author import commands
from lozenge_deploy.cli.cache.commands import app as cache
from lozenge_deploy.cli.erasure.commands import erase
from lozenge_deploy.cli.lists.commands import app as lists
from lozenge_deploy.cli.logs import logs
from lozenge_deploy.cli.offsets import backfill, coverage, offsets
from lozenge_deploy.cli.options import DEBUG
from lozenge_deploy.cli.printing.plain_commands import PlainGroup
from lozenge_deploy.cli.printing.terminal import echo, never_fail_to_encode
from lozenge_deploy.cli.sink.commands import app as sink
from lozenge_deploy.cli.source.commands import app as source
from lozenge_deploy.cli.status import status
from lozenge_deploy.cli.stream import commands as stream
from lozenge_deploy.cli.table.commands import app as table
from lozenge_deploy.cli.why import why
from lozenge_deploy.local.running_platform import variables_near

app = typer.Typer(
    name="lozenge",
    cls=PlainGroup,
    help="Detectors on a stream: write, test, deploy and monitor them one at a time.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its help needs 0.25 s to import what it is drawn with
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(commands.new)
app.command()(commands.check)
app.command("test")(commands.run_tests)
app.command("try")(commands.try_)
app.command()(commands.dev)
app.command()(local.up)
app.command()(local.down)
app.command()(deploy.plan)
app.command()(deploy.deploy)
app.command()(deploy.rollback)
app.command("set")(deploy.set_)
app.command()(lifecycle.pause)
app.command()(lifecycle.resume)
app.command()(lifecycle.restart)
app.command()(lifecycle.retire)
app.command()(lifecycle.scale)
app.command()(lifecycle.history)
app.command()(offsets)
app.command()(coverage)
app.command()(backfill)
app.add_typer(dlq.app, name="dlq")
app.add_typer(archive.app, name="archive")
app.command()(archive.sql)
app.command()(archive.export)
app.add_typer(sink, name="sink")
app.add_typer(cache, name="cache")
app.command()(erase)
app.add_typer(lists, name="list")
app.add_typer(table, name="table")
app.add_typer(schemas.app, name="schemas")
app.add_typer(stream.app, name="stream")
app.add_typer(source, name="source")
app.add_typer(routes.routes, name="routes")
app.add_typer(notify.cases, name="cases")
app.add_typer(notify.silence, name="silence")
app.add_typer(notify.channels, name="channels")
app.add_typer(notify.rate_limits, name="rate-limits")
app.add_typer(notify.notifications, name="notifications")
app.command()(why)
app.command()(notify.feedback)
app.command()(status)
app.command()(logs)
app.command()(inspect.describe)
app.command()(inspect.peek)
app.command()(inspect.state)
app.command()(inspect.doctor)


def _version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        echo(f"lozenge {version('lozenge-platform')}")
        raise typer.Exit


VERSION = Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")]


@app.callback()
def _common(debug: DEBUG = False, version: VERSION = False) -> None:
    """Detectors on a stream: write, test, deploy and monitor them one at a time."""
    global _debug
    _debug = debug
    with suppress(FileNotFoundError):  # the current folder is gone
        os.environ.update(variables_near(Path.cwd(), os.environ))


_debug = False


def main() -> None:
    """Runs the command; an error becomes one sentence and a hint, and a stack trace only with `--debug`."""
    never_fail_to_encode()
    try:
        app()
    except Exception as error:
        if _debug:
            raise
        known = error if isinstance(error, LozengeError) else _unexpected(error)
        echo(f"lozenge: {known}", err=True)
        sys.exit(known.exit_code)


def _unexpected(error: Exception) -> LozengeError:
    """An error that no command expects: a fault of Lozenge."""
    return LozengeError(
        f"unexpected {type(error).__name__}: {error}",
        hint="this is a fault in Lozenge; `lozenge --debug` with the same command shows where, for a report",
    )


if __name__ == "__main__":
    main()
