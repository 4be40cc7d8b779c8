"""The commands for the routing file: check it, show where an alert goes, and show its versions."""

from pathlib import Path
from typing import Annotated

import typer

from lozenge_deploy.cli.options import OUTPUT
from lozenge_deploy.cli.printing.output import OutputFormat, show, show_readable
from lozenge_deploy.cli.printing.terminal import echo

routes = typer.Typer(help="The routing file.", no_args_is_help=True)

FILE = Annotated[Path, typer.Option("--file", envvar="LOZENGE_DOWNSTREAM_ROUTING", help="The routing file.")]
ROUTING = Path("routing.toml")


@routes.command("test")
def routes_test(
    file: FILE = ROUTING,
    secrets: Annotated[bool, typer.Option("--secrets", help="Require every secret that the file refers to.")] = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Validate the routing file, warn of labels that no alert has, and run its examples; exit code 1 if one fails."""
    from lozenge_deploy.operations.notifier_client import known_labels, routing

    known = [f"--label={name}" for name in known_labels()]
    code, said = routing("test", *(["--secrets"] if secrets else []), *known, file)
    count, failed = said["examples"], said["failed"]
    if output is OutputFormat.JSON:
        show([said], output)
    elif failed:
        show(failed, output)
    else:
        echo(f"{file} is valid, and its {count} examples hold" if count else f"{file} is valid")
    for warning in said["warnings"]:
        echo(f"warning: {warning}", err=True)
    raise typer.Exit(code)


@routes.command("show")
def routes_show(
    alert: Annotated[Path, typer.Argument(metavar="ALERT.json", help="Its labels, or an alert of `lozenge peek`.")],
    file: FILE = ROUTING,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Show the routes that take an alert, with their channels and the labels of its case."""
    from lozenge_deploy.operations.notifier_client import routing

    _, rows = routing("show", file, alert)
    show(rows, output, brief=("route", "channels", "case", "group_wait", "group_interval"))


@routes.command("history")
def routes_history(output: OUTPUT = OutputFormat.TABLE) -> None:
    """Show the versions of the routing file that the notifier has read, the newest first, and why one is not used."""
    from lozenge_deploy.operations.notifier_client import ask

    said = ask("GET", "/routing")
    rows = [row | {"used": row["version"] == said["version"]} for row in said["versions"]]
    show_readable(rows, output, "the notifier has read no routing file", times=("loaded_at",))
