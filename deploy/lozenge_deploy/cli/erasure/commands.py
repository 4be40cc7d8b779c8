"""`lozenge erase`: removes one person's records from every place that keeps them, and prints a receipt."""

from typing import Annotated

import typer

from lozenge.archive.settings import DEFAULT_ARCHIVE
from lozenge_deploy.cli.archive.commands import ARCHIVE
from lozenge_deploy.cli.options import DRY_RUN, OUTPUT, seconds_of
from lozenge_deploy.cli.printing.output import OutputFormat, show
from lozenge_deploy.cli.printing.terminal import echo


def erase(
    key: Annotated[str, typer.Argument(metavar="KEY", help="A key of streams, such as card.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="Its id, as events have it.")],
    yes: Annotated[bool, typer.Option("--yes", help="Erase it, and not only show what would be erased.")] = False,
    dry_run: DRY_RUN = False,
    archive: ARCHIVE = DEFAULT_ARCHIVE,
    timeout: Annotated[
        str, typer.Option(help="How long each place may take to catch up, or a detector to pause.")
    ] = "2m",
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Erase one entity from tables, states, lists, caches and the notifier, and show when the rest of it expires.

    The receipt has a line for each place. Exit code 1 if a place may still have records that do not expire; the same
    command continues then. Records that come later are kept as before.
    """
    from lozenge.errors import NotErased
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.streams.project import Streams
    from lozenge_deploy.operations.erasure.erasure import erased
    from lozenge_deploy.operations.erasure.plan import Plan, subject_of
    from lozenge_deploy.operations.erasure.receipt import unfinished

    streams = Streams.load()
    plan = Plan(
        kafka=KafkaSettings.load(),
        streams=streams,
        subject=subject_of(streams, key, value),
        project=streams.project,
        archive=archive,
        seconds=seconds_of(timeout, "--timeout"),
        dry_run=dry_run or not yes,
        report=lambda said: echo(said, err=True),
    )
    lines = erased(plan)
    show([line.row() for line in lines], output)
    if plan.dry_run and not dry_run:
        echo("nothing was changed; the same command with --yes erases it", err=True)
    if left := unfinished(lines):
        raise NotErased(
            f"erasing a {key}: {len(left)} places are not done: {', '.join(sorted({line.place for line in left}))}",
            hint="the receipt says why; the same command does what is left",
        )
