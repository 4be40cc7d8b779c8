"""`lozenge logs`: the log of an app, from all machines on which it ran."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lozenge.errors import UsageError
from lozenge_deploy.cli.options import NAME, OUTPUT, app_of
from lozenge_deploy.cli.printing.output import OutputFormat
from lozenge_deploy.cli.printing.terminal import echo, json_text, print_json, visible

if TYPE_CHECKING:
    from lozenge.kafka.settings import KafkaSettings


class Level(StrEnum):
    """The lowest level to show."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


def logs(
    name: NAME,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow new lines until Ctrl-C.")] = False,
    count: Annotated[int, typer.Option("-n", min=0, max=100_000, help="How many of the latest lines.")] = 100,
    level: Annotated[Level, typer.Option(help="The lowest level to show.")] = Level.DEBUG,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Show the log of an app; with `-o json`, one JSON object per line."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.observe.log_reader import LogReader

    kafka = KafkaSettings.load()
    reader = LogReader(kafka, app_of(name), level)
    lines, end = reader.latest(count)
    for line in lines:
        _print(line, output)
    if follow:
        for line in reader.following(end):
            _print(line, output)
    elif not lines:
        if not LogReader(kafka, app_of(name)).latest(1)[0]:
            _refuse_unknown(kafka, app_of(name))
        echo(f"no line of {app_of(name)} at level {level} or above was shipped in the last 7 days", err=True)


def _refuse_unknown(kafka: "KafkaSettings", app: str) -> None:
    from lozenge_deploy.control.deployments_view import Deployments
    from lozenge_deploy.releases.lint.names import APPS

    with Deployments(kafka) as deployments:
        known = {*APPS, *deployments.all()}
    if app not in known:
        raise UsageError(f"looking for {app}: it has never run", hint=f"known apps: {', '.join(sorted(known))}")


def _print(line: Mapping[str, Any], output: OutputFormat) -> None:
    print_json(line, indent=None) if output is OutputFormat.JSON else echo(text_of(line))


def text_of(line: Mapping[str, Any]) -> str:
    """A line for people: time, level, instance and release, event, other fields; a stack trace indented below.

    What a field holds stays in its line, so that none looks like another line.
    """
    fields = {name: value for name, value in line.items() if value not in (None, "")}
    time, level, event = (str(fields.pop(name, "")) for name in ("time", "level", "event"))
    source = f"{fields.pop('instance', '')}/{fields.pop('release', '')}"
    fields.pop("app", None)
    stack = fields.pop("exception", "")
    more = " ".join(f"{name}={_value(value)}" for name, value in fields.items())
    first = visible("  ".join(part for part in (time[:23], f"{level:<7}", source, event, more) if part))
    return "\n".join([first, *(f"    {visible(line)}" for line in str(stack).split("\n") if line)])


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value, ascii_only=False)
