"""`lozenge stream`: what a mapping makes of raw records."""

import json
import subprocess
import sys
from typing import Annotated

import typer

from lozenge.errors import LozengeError, UsageError
from lozenge_deploy.cli.options import OUTPUT
from lozenge_deploy.cli.printing.output import OutputFormat, show_fields
from lozenge_deploy.cli.printing.terminal import echo, print_json

app = typer.Typer(help="Kinds of events, and how raw records become them.", no_args_is_help=True)


@app.command("try")
def try_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A stream.")],
    source: Annotated[str, typer.Option(help="The source of one of its mappings, if it has several.")] = "",
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Show what upstream makes of raw records from stdin, field by field, or why it makes no event of them.

    Each line is a record, or all of the input is one. Nothing is written, and no broker is needed. Exit code 1: one of
    them would be a dead letter.
    """
    if sys.stdin.isatty():
        raise UsageError(f"trying records of {name}: none were given", hint=f"lozenge stream try {name} < record.json")
    run = subprocess.run(
        [sys.executable, "-m", "lozenge_upstream.try_records", name, *([source] if source else [])],
        input=sys.stdin.buffer.read(),
        capture_output=True,
    )
    if run.returncode:
        said = run.stderr.decode(errors="replace").strip().removeprefix("lozenge: ")
        raise (UsageError if run.returncode == UsageError.exit_code else LozengeError)(
            said or f"trying records of {name}: the process ended with exit code {run.returncode}"
        )
    tried = json.loads(run.stdout)
    if output is OutputFormat.JSON:
        print_json(tried)
    for number, each in enumerate(tried if output is not OutputFormat.JSON else (), 1):
        record = f"record {number}" if len(tried) > 1 else "the record"
        if each["event"] is not None:
            echo(f"{record} is an event")
            show_fields(each["event"], output)
        elif each["skipped"]:
            echo(f"{record} is skipped: {each['skipped']}")
        else:
            echo(f"{record} is a dead letter: {', '.join(each['problems'])}")
    if any(each["problems"] for each in tried):
        raise typer.Exit(1)
