"""`lozenge stream`: which kinds of events there are, whether they are right, and what becomes of raw records."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from lozenge.errors import BrokerUnavailable, UsageError
from lozenge_deploy.cli.options import OUTPUT, detectors_folder
from lozenge_deploy.cli.printing.output import OutputFormat, show, show_fields
from lozenge_deploy.cli.printing.terminal import echo, json_text, print_json
from lozenge_deploy.cli.stream import release_commands, samples
from lozenge_deploy.cli.stream.draft import new

BROKER_SECONDS = 1.0
"""So long `ls` waits for a broker, which the other columns do not need."""
app = typer.Typer(help="Kinds of events, and how raw records become them.", no_args_is_help=True)
app.command()(new)


@app.command("ls")
def list_(output: OUTPUT = OutputFormat.TABLE) -> None:
    """List the streams of the project, with keys, raw topics and the release in force ("?" without a broker)."""
    from lozenge.streams.project import Streams

    streams = Streams.load().definitions
    present = _in_force([stream.name for stream in streams])
    rows = [
        {
            "stream": stream.name,
            "release": present.get(stream.name, "?"),
            "title": stream.title,
            "owner": stream.owner,
            "keys": ", ".join(stream.keys),
            "raw topics": ", ".join(stream.raw_topics),
        }
        for stream in streams
    ]
    show(rows, output)


@app.command()
def check(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A stream.")], output: OUTPUT = OutputFormat.TABLE
) -> None:
    """Check everything that a stream's folder declares, and that upstream's own code can run its mappings.

    `lozenge stream test` runs its samples. Nothing is written, and no broker is needed. Every problem is named at once;
    exit code 2 says that there is one.
    """
    from lozenge_deploy.operations.streams.upstream_tools import check_mappings

    show(check_mappings(name), output)


@app.command("try")
def try_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A stream.")],
    source: Annotated[str, typer.Option(help="The source of one of its mappings, if it has several.")] = "",
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Show what upstream makes of raw records from stdin, field by field, or why it makes no event of them.

    Each line is a record, or each element of an array, or all of the input is one. Nothing is written, and no broker is
    needed. Exit code 1: one of them would be a dead letter.
    """
    if sys.stdin.isatty():
        raise UsageError(f"trying records of {name}: none were given", hint=f"lozenge stream try {name} < record.json")
    from lozenge_deploy.operations.streams.upstream_tools import asked

    tried = asked(
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
            show_fields({name: _shown(value) for name, value in each["event"].items()}, output)
        elif each["skipped"]:
            echo(f"{record} is skipped: {each['skipped']}")
        else:
            echo(f"{record} is a dead letter: {', '.join(each['problems'])}")
            for sentence in each["sentences"]:
                echo(f"  - {sentence}")
    if any(each["problems"] for each in tried):
        raise typer.Exit(1)


@app.command()
def types(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="A stream, or those that a detector reads.")
    ] = None,
    key: Annotated[str, typer.Option(help="Of several streams: the key by which they are merged.")] = "",
    alerts_of: Annotated[
        str, typer.Option(metavar="DETECTOR", help="Instead of streams: a detector whose alerts are the events.")
    ] = "",
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help="Write it there; by default it is printed.")
    ] = None,
) -> None:
    """Write the event of a stream as a typed Python class, so that an editor completes its fields and mypy checks them.

    A fold names the class as the type of its event: `def step(state: Seen, event: Authorisation, ...)`. Write the
    module into the folder of the detector, and again when the schema has changed.
    """
    from lozenge.detector.input_stream import together
    from lozenge.streams.alert_stream import alert_stream
    from lozenge.streams.project import Streams
    from lozenge_deploy.cli.author.common_key import common_key
    from lozenge_deploy.cli.stream.event_class import module_text

    if bool(names) == bool(alerts_of):
        raise UsageError("writing a class of events: of which?", hint="name a stream, or a detector by --alerts-of")
    if alerts_of:
        text = module_text(alert_stream(_known_detector(alerts_of), key))
    else:
        streams = [Streams.load().get(name) for name in names or ()]
        text = module_text(together(streams, common_key("writing a class of events", streams, key)))
    if to is None:
        typer.echo(text, nl=False)
        return
    try:
        to.write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"writing {to}: {error.strerror}", hint="name another file") from error
    echo(f"wrote {to}")


def _known_detector(name: str) -> str:
    """The name of a detector that has a folder in the project; raises UsageError with those that have one."""
    detectors = detectors_folder()
    found = sorted(each.parent.name for each in detectors.glob("[a-z]*/pyproject.toml"))
    if name not in found:
        raise UsageError(
            f"writing a class of events: {detectors} has no detector {name}", hint=f"name one of {', '.join(found)}"
        )
    return name


def _shown(value: Any) -> Any:
    """A field of an event for people; true and false as JSON has them."""
    return json_text(value, ascii_only=False) if isinstance(value, bool) else value


def _in_force(streams: list[str]) -> dict[str, str]:
    """The release in force of each; nothing without a broker."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.kafka.stream_releases import present_state
    from lozenge.kafka.topic_admin import partitions
    from lozenge_deploy.operations.streams.release_table import in_force

    kafka = KafkaSettings.load()
    try:
        partitions(kafka, timeout=BROKER_SECONDS)  # the one call with a short timeout
        return {stream: in_force(present_state(kafka, stream)) for stream in streams}
    except BrokerUnavailable:
        return {}


app.command("test")(samples.run_samples)
app.command()(release_commands.plan)
app.command()(release_commands.deploy)
app.command()(release_commands.rollback)
app.command()(release_commands.releases)
app.command()(release_commands.history)
