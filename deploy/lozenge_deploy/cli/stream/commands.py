"""`lozenge stream`: which kinds of events there are, whether they are right, and what becomes of raw records."""

import json
import subprocess
import sys
from typing import Annotated, Any

import typer

from lozenge.errors import ConfigError, LozengeError, UsageError
from lozenge_deploy.cli.options import OUTPUT
from lozenge_deploy.cli.printing.output import OutputFormat, show, show_fields
from lozenge_deploy.cli.printing.terminal import echo, print_json

app = typer.Typer(help="Kinds of events, and how raw records become them.", no_args_is_help=True)


@app.command("ls")
def list_(output: OUTPUT = OutputFormat.TABLE) -> None:
    """List the streams of the project, with the keys of their events and the raw topics that they are made of."""
    from lozenge.streams.project import Streams

    rows = [
        {
            "stream": stream.name,
            "title": stream.title,
            "owner": stream.owner,
            "keys": ", ".join(stream.keys),
            "raw topics": ", ".join(stream.raw_topics),
        }
        for stream in Streams.load().definitions
    ]
    show(rows, output)


@app.command()
def check(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A stream.")], output: OUTPUT = OutputFormat.TABLE
) -> None:
    """Check everything that a stream's folder declares, and that upstream's own code can run its mappings.

    Nothing is written, and no broker is needed. Exit code 2: something is wrong. Every problem is named at once.
    """
    found = _asked(f"checking stream {name}", "lozenge_upstream.check_mappings", name)
    if found["problems"]:
        raise ConfigError(
            f"checking the mappings of stream {name}: {len(found['problems'])} problem(s)", problems=found["problems"]
        )
    show(found["mappings"], output)


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
    tried = _asked(
        f"trying records of {name}",
        "lozenge_upstream.try_records",
        *(name, *([source] if source else [])),
        given=sys.stdin.buffer.read(),
    )
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


def _asked(doing: str, module: str, *arguments: str, given: bytes = b"") -> Any:
    """What a module of upstream answers as JSON; raises the error that it ends with."""
    run = subprocess.run([sys.executable, "-m", module, *arguments], input=given, capture_output=True)
    if run.returncode:
        said = run.stderr.decode(errors="replace").strip().removeprefix("lozenge: ")
        raise (UsageError if run.returncode == UsageError.exit_code else LozengeError)(
            said or f"{doing}: the process ended with exit code {run.returncode}"
        )
    return json.loads(run.stdout)
