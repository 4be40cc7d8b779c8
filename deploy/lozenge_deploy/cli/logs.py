"""`lozenge logs`: what an app has logged, on whatever machine it ran."""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lozenge.errors import UsageError
from lozenge_deploy.cli.options import NAME, OUTPUT, Format, app_of

if TYPE_CHECKING:
    from lozenge.kafka.settings import KafkaSettings


class Level(StrEnum):
    """How bad a line is at least."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


def logs(
    name: NAME,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes, until Ctrl-C.")] = False,
    count: Annotated[int, typer.Option("-n", min=0, max=100_000, help="How many of the latest lines.")] = 100,
    level: Annotated[Level, typer.Option(help="Only lines at least as bad.")] = Level.DEBUG,
    output: OUTPUT = Format.TABLE,
) -> None:
    """Show what an app has logged; with `-o json`, one JSON object per line."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.observe.log_reader import LogReader

    kafka = KafkaSettings.load()
    journal = LogReader(kafka, app_of(name), level)
    lines, end = journal.latest(count)
    for line in lines:
        _print(line, output)
    if follow:
        for line in journal.following(end):
            _print(line, output)
    elif not lines:
        if not LogReader(kafka, app_of(name)).latest(1)[0]:
            _refuse_unknown(kafka, app_of(name))
        typer.echo(
            f"nothing of {app_of(name)}, of level {level} or worse, has been shipped in the last 7 days", err=True
        )


def _refuse_unknown(kafka: "KafkaSettings", app: str) -> None:
    from lozenge_deploy.control.deployments_view import Deployments
    from lozenge_deploy.releases.lint import APPS

    with Deployments(kafka) as fleet:
        known = {*APPS, *fleet.members()}
    if app not in known:
        raise UsageError(f"looking for {app}: it has never run", hint=f"there is {', '.join(sorted(known))}")


def _print(line: Mapping[str, Any], output: Format) -> None:
    typer.echo(json.dumps(line) if output is Format.JSON else text_of(line))


def text_of(line: Mapping[str, Any]) -> str:
    """A line for people: time, level, instance and release, event, whatever else it has; a stack goes below."""
    told = {name: value for name, value in line.items() if value not in (None, "")}
    time, level, event = (str(told.pop(name, "")) for name in ("time", "level", "event"))
    who = f"{told.pop('instance', '')}/{told.pop('release', '')}"
    told.pop("app", None)
    stack = told.pop("exception", "")
    more = " ".join(f"{name}={_value(value)}" for name, value in told.items())
    first = "  ".join(part for part in (time[:23], f"{level:<7}", who, event, more) if part)
    return f"{first}\n{stack}" if stack else first


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
