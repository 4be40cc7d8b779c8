"""The verbs for what is deployed: pause, resume, restart, retire; and history."""

import typer

from lozenge.errors import UsageError
from lozenge_deploy.cli.options import NAME, OUTPUT, Format, app_of, seconds_of, show
from lozenge_deploy.cli.progress import DRY_RUN, MESSAGE, TIMEOUT, WAIT, await_change


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

    limit = seconds_of(timeout, "--timeout") if wait else None
    with Control(KafkaSettings.load()) as control:
        present = control.deployed(app_of(name))
        if dry_run:
            typer.echo(f"{present.detector} {present.release}: another process would take over at a batch boundary")
            return
        wanted = control.change(
            present,
            "restart",
            message,
            goal="running",
            restart=present.restart + 1,
            state=control.pending(present),
            before=None,
        )
        await_change(control, wanted, limit)


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

    limit = seconds_of(timeout, "--timeout") if wait else None
    with Control(KafkaSettings.load()) as control:
        present = control.deployed(app_of(name))
        if present.goal == goal:
            typer.echo(f"{present.detector} is to be {goal} already")
            return
        if dry_run:
            typer.echo(f"{present.detector} {present.release}: {present.goal} would become {goal}; offsets stay")
            return
        wanted = control.change(present, verb, message, goal=goal, state=control.pending(present), before=None)
        await_change(control, wanted, limit)
