"""Waiting until a requested change is complete, with its progress on standard error."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lozenge_deploy.cli.printing.output import OutputFormat, show
from lozenge_deploy.cli.printing.terminal import echo, visible

if TYPE_CHECKING:
    from lozenge_deploy.control.client import Control
    from lozenge_deploy.control.records import DeploymentSpec, DeploymentStatus

MESSAGE = Annotated[str, typer.Option("-m", "--message", help="The reason; it is kept in the history.")]
WAIT = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the change is complete, or return at once.")]
TIMEOUT = Annotated[str, typer.Option(help='How long to wait, such as "10m"; afterwards the exit code is 124.')]


@contextmanager
def interruptible(command: str) -> Iterator[None]:
    """Around the wait for what was requested: Ctrl-C says that it still happens, and which `command` shows it."""
    try:
        yield
    except KeyboardInterrupt:
        echo(f"this no longer waits; the change was requested and continues: `{command}` shows its progress", err=True)
        raise


def await_change(
    control: "Control",
    wanted: "DeploymentSpec",
    timeout: float | None,
    output: OutputFormat = OutputFormat.TABLE,
    **more: Any,
) -> None:
    """Waits `timeout` seconds (None: not at all) for the change; raises as `Control.await_outcome` does.

    As JSON it prints one object at the end: `more`, and the status then.
    """
    observed: DeploymentStatus | None = None
    if timeout is None:
        sentence = f"{wanted.detector}: {wanted.what} is pending; `lozenge status {wanted.detector}` shows its progress"
    else:
        progress = _Progress()
        with interruptible(f"lozenge status {wanted.detector}"):
            observed = control.await_outcome(wanted, timeout, progress.report)
        sentence = progress.summary(wanted, observed)
    if output is OutputFormat.JSON:
        status = observed.model_dump(mode="json") if observed else None
        show([{"detector": wanted.detector, **more, "status": status}], output)
    else:
        echo(sentence)


def await_quietly(control: "Control", wanted: "DeploymentSpec", timeout: float) -> None:
    """Waits for a change that is a step of another one; raises as `Control.await_outcome` does."""
    control.await_outcome(wanted, timeout, _Progress().report)


def show_changes(detector: str, changes: list[dict[str, Any]], final: bool, output: OutputFormat) -> None:
    """The changes of a detector, as `show_rows` shows them."""
    show_rows(changes, {"detector": detector, "changes": changes, "status": None}, final, output)


def show_rows(rows: list[dict[str, Any]], document: dict[str, Any], final: bool, output: OutputFormat) -> None:
    """A table at once; as JSON the `document`, only if nothing else follows, so that the output is one document."""
    if output is not OutputFormat.JSON:
        show(rows, output)
    elif final:
        show([document], output)


class _Progress:
    """One line on standard error for every step, with the seconds since the start."""

    def __init__(self) -> None:
        self._started_at = time.monotonic()
        self._last = ""

    def report(self, observed: "DeploymentStatus") -> None:
        step = f"{observed.phase}{': ' + observed.reason if observed.reason else ''}"
        if step != self._last:
            self._last = step
            echo(visible(f"{time.monotonic() - self._started_at:5.1f} s  {step}"), err=True)

    def summary(self, wanted: "DeploymentSpec", observed: "DeploymentStatus") -> str:
        from datetime import timedelta

        from lozenge.durations import text_of
        from lozenge_deploy.control.records import format_offsets

        took = f"{time.monotonic() - self._started_at:.1f} s"
        if wanted.goal != "running":
            return f"{wanted.detector} is {wanted.goal} ({took})"
        since = f" from {format_offsets(observed.since)}" if observed.since else ""
        watched = f"; watch window {text_of(timedelta(seconds=wanted.watch))}" if observed.outcome == "watched" else ""
        settings = f", settings {observed.digest}" if observed.digest else ""
        return (
            f"{wanted.detector} {observed.release or wanted.release} is live, generation {observed.generation}"
            f"{settings}{since} ({took}){watched}"
        )
