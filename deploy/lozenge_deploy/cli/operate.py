"""The verbs that change what runs: deploy, rollback, set, pause, resume, restart, retire; and history."""

import json
import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lozenge.errors import ConfigError, UsageError
from lozenge_deploy.cli.options import NAME, OUTPUT, Format, app_of, folder_of, show

if TYPE_CHECKING:
    from lozenge_deploy.control.client import Control
    from lozenge_deploy.control.records import Desired, Observed

NICE = 10
"""Testing and building take processors, and must not slow down what runs."""
MESSAGE = Annotated[str, typer.Option("-m", "--message", help="Why; kept in the history.")]
DRY_RUN = Annotated[bool, typer.Option("--dry-run", help="Only tell what would change.")]
WAIT = Annotated[bool, typer.Option("--wait/--no-wait", help="Return once it is done, or at once.")]
TIMEOUT = Annotated[str, typer.Option(help='How long to wait, such as "10m"; then the exit code is 124.')]
SET = Annotated[list[str] | None, typer.Option("--set", help="A setting: limit=250. Once per setting.")]
STATE = Annotated[str | None, typer.Option(help="What it begins with: keep, rebuild or fresh; else as declared.")]
WATCH = Annotated[str, typer.Option(help='For how long it is rolled back if it turns out ill, such as "5m".')]


def deploy(
    name: NAME = ".",
    state: STATE = None,
    set_: SET = None,
    watch: WATCH = "5m",
    message: MESSAGE = "",
    dry_run: DRY_RUN = False,
    wait: WAIT = True,
    timeout: TIMEOUT = "10m",
) -> None:
    """Release a detector's folder and put it in the place of what runs, at an exact offset."""
    from lozenge.kafka import KafkaSettings
    from lozenge_deploy.control.client import Control
    from lozenge_deploy.deploying import prepare

    folder, kafka = folder_of(name), KafkaSettings.load()
    os.nice(NICE)
    with Control(kafka) as control:
        candidate = prepare(folder, kafka, control.desired(folder.name), state=state, settings=_settings(set_ or ()))
        show(candidate.changes(), Format.TABLE)
        if dry_run:
            return
        release = candidate.release()
        wanted = candidate.desired(release, watch=_seconds(watch), message=message)
        _carry_out(control, control.wish(wanted), wait, timeout)


def rollback(
    name: NAME = ".",
    to: Annotated[str | None, typer.Option(help="A release such as r7; else the one before.")] = None,
    state: STATE = None,
    message: MESSAGE = "",
    dry_run: DRY_RUN = False,
    wait: WAIT = True,
    timeout: TIMEOUT = "10m",
) -> None:
    """Put an earlier release in the place of the present one, at an exact offset."""
    from lozenge.kafka import KafkaSettings
    from lozenge_deploy.control.client import Control
    from lozenge_deploy.deploying import back

    kafka = KafkaSettings.load()
    with Control(kafka) as control:
        present = control.deployed(app_of(name))
        wanted, changes = back(kafka, present, control.history(present.detector), to=to, state=state, message=message)
        show(changes, Format.TABLE)
        if not dry_run:
            _carry_out(control, control.wish(wanted), wait, timeout)


def set_(
    name: NAME,
    values: Annotated[list[str] | None, typer.Argument(help="limit=250; `limit=` goes back to the default.")] = None,
    max_batch: Annotated[int | None, typer.Option(min=1, help="Events in a batch at most.")] = None,
    trigger: Annotated[str | None, typer.Option(help='Time between batches, such as "500ms".')] = None,
    rate: Annotated[int | None, typer.Option(min=1, help="Events per second at most.")] = None,
    cores: Annotated[int | None, typer.Option(min=1, help="Task slots; another process takes over.")] = None,
    memory_mb: Annotated[int | None, typer.Option(min=450, help="The JVM's heap; another process takes over.")] = None,
    message: MESSAGE = "",
    dry_run: DRY_RUN = False,
    wait: WAIT = True,
    timeout: TIMEOUT = "10m",
) -> None:
    """Change settings or resources of what runs, without a release."""
    from lozenge.kafka import KafkaSettings
    from lozenge_deploy.control.client import Control
    from lozenge_deploy.deploying import resettle

    kafka = KafkaSettings.load()
    given: dict[str, Any] = {
        name: value
        for name, value in (("max_batch", max_batch), ("trigger", trigger), ("cores", cores), ("memory_mb", memory_mb))
        if value is not None
    }
    if not values and not given and rate is None:
        raise UsageError(f"setting something of {name}: nothing is given", hint=f"`lozenge set {name} limit=250`")
    with Control(kafka) as control:
        present = control.deployed(app_of(name))
        settings, changes = resettle(kafka, present, _settings(values or (), empty=True), given, rate)
        show(changes, Format.TABLE)
        if not dry_run:
            wanted = control.change(present, "set", message or _said(values, given, rate), **settings)
            _carry_out(control, wanted, wait, timeout)


def pause(
    name: NAME = ".", message: MESSAGE = "", dry_run: DRY_RUN = False, wait: WAIT = True, timeout: TIMEOUT = "2m"
) -> None:
    """End the detector's process at a batch boundary; `resume` goes on there."""
    _goal(name, "pause", "paused", message, dry_run, wait, timeout)


def resume(
    name: NAME = ".", message: MESSAGE = "", dry_run: DRY_RUN = False, wait: WAIT = True, timeout: TIMEOUT = "5m"
) -> None:
    """Start a paused or retired detector where it ended."""
    _goal(name, "resume", "running", message, dry_run, wait, timeout)


def retire(
    name: NAME = ".", message: MESSAGE = "", dry_run: DRY_RUN = False, wait: WAIT = True, timeout: TIMEOUT = "2m"
) -> None:
    """End the detector for good. Its topics, offsets and releases stay, so `resume` can take that back."""
    _goal(name, "retire", "retired", message, dry_run, wait, timeout)


def restart(
    name: NAME = ".", message: MESSAGE = "", dry_run: DRY_RUN = False, wait: WAIT = True, timeout: TIMEOUT = "5m"
) -> None:
    """Put a new process of the same release in the place of the running one, without a gap."""
    from lozenge.kafka import KafkaSettings
    from lozenge_deploy.control.client import Control

    with Control(KafkaSettings.load()) as control:
        present = control.deployed(app_of(name))
        if dry_run:
            typer.echo(f"{present.detector} {present.release}: another process would take over at a batch boundary")
            return
        wanted = control.change(present, "restart", message, goal="running", restart=present.restart + 1, state="keep")
        _carry_out(control, wanted, wait, timeout)


def history(name: NAME = ".", output: OUTPUT = Format.TABLE) -> None:
    """Show all that ever happened to a detector: who did what, when, and what came of it."""
    from lozenge.kafka import KafkaSettings
    from lozenge_deploy.control.client import Control

    with Control(KafkaSettings.load()) as control:
        rows = [happening.model_dump(mode="json") for happening in control.history(app_of(name))]
    if not rows:
        raise UsageError(f"looking for {name}: nothing has happened to it", hint=f"`lozenge deploy {name}`")
    for row in rows:
        row["at"] = str(row["at"])[:19].replace("T", " ")
    show(rows, output, brief=("at", "what", "release", "generation", "by", "detail"))


def _goal(name: str, verb: str, goal: str, message: str, dry_run: bool, wait: bool, timeout: str) -> None:
    from lozenge.kafka import KafkaSettings
    from lozenge_deploy.control.client import Control

    with Control(KafkaSettings.load()) as control:
        present = control.deployed(app_of(name))
        if present.goal == goal:
            typer.echo(f"{present.detector} is to be {goal} already")
            return
        if dry_run:
            typer.echo(f"{present.detector} {present.release}: {present.goal} would become {goal}; offsets stay")
            return
        wanted = control.change(present, verb, message, goal=goal, state="keep")
        _carry_out(control, wanted, wait, timeout)


def _carry_out(control: "Control", wanted: "Desired", wait: bool, timeout: str) -> None:
    if not wait:
        typer.echo(
            f"{wanted.detector}: {wanted.what} is asked for; `lozenge status {wanted.detector}` tells how it goes"
        )
        return
    begun = _Progress()
    observed = control.await_outcome(wanted, _seconds(timeout), begun.tell)
    typer.echo(begun.summary(wanted, observed))


class _Progress:
    """One line on standard error for every step, with the seconds since the beginning."""

    def __init__(self) -> None:
        import time

        self._clock = time.monotonic
        self._began = self._clock()
        self._last = ""

    def tell(self, observed: "Observed") -> None:
        step = f"{observed.phase}{': ' + observed.reason if observed.reason else ''}"
        if step != self._last:
            self._last = step
            print(f"{self._clock() - self._began:5.1f} s  {step}", file=sys.stderr, flush=True)

    def summary(self, wanted: "Desired", observed: "Observed") -> str:
        took = f"{self._clock() - self._began:.1f} s"
        if wanted.goal != "running":
            return f"{wanted.detector} is {wanted.goal} ({took})"
        since = " ".join(f"{p}:{o}" for p, o in sorted(observed.since.items()))
        watched = f"; watched for {wanted.watch / 60:.0f} min" if observed.outcome == "watched" else ""
        return (
            f"{wanted.detector} {observed.release} is live, generation {observed.generation}, "
            f"settings {observed.digest} from {since} on ({took}){watched}"
        )


def _settings(texts: "list[str] | tuple[str, ...]", *, empty: bool = False) -> dict[str, Any]:
    """Name and value of each "name=value"; JSON values as such. An empty one is None if that is allowed."""
    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or (not value and not empty):
            raise UsageError(f"reading the setting {text}: write it as name=value")
        try:
            settings[name] = json.loads(value) if value else None
        except json.JSONDecodeError:
            settings[name] = value
    return settings


def _said(values: list[str] | None, given: dict[str, Any], rate: int | None) -> str:
    more = [*(f"{name}={value}" for name, value in given.items()), *([f"rate={rate}"] if rate is not None else [])]
    return " ".join([*(values or ()), *more])


def _seconds(text: str) -> float:
    from lozenge.durations import duration

    try:
        return duration(text).total_seconds()
    except ValueError as error:
        raise ConfigError(f"reading a duration: {error}") from error
