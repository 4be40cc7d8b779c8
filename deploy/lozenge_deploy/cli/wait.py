"""Waiting until a change that was asked for has come about, and telling how it goes."""

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lozenge_deploy.cli.options import Format, show

if TYPE_CHECKING:
    from lozenge_deploy.control.client import Control
    from lozenge_deploy.control.records import DeploymentSpec, DeploymentStatus

MESSAGE = Annotated[str, typer.Option("-m", "--message", help="Why; kept in the history.")]
WAIT = Annotated[bool, typer.Option("--wait/--no-wait", help="Return once it is done, or at once.")]
TIMEOUT = Annotated[str, typer.Option(help='How long to wait, such as "10m"; then the exit code is 124.')]


def await_change(
    control: "Control", wanted: "DeploymentSpec", timeout: float | None, output: Format = Format.TABLE, **more: Any
) -> None:
    """Waits `timeout` seconds (None: not at all) for what is asked for; raises as `Control.await_outcome` does.

    As JSON it prints one object at the end: `more`, and what was observed then.
    """
    observed: DeploymentStatus | None = None
    if timeout is None:
        said = f"{wanted.detector}: {wanted.what} is asked for; `lozenge status {wanted.detector}` tells how it goes"
    else:
        begun = _Progress()
        observed = control.await_outcome(wanted, timeout, begun.tell)
        said = begun.summary(wanted, observed)
    if output is Format.JSON:
        seen = observed.model_dump(mode="json") if observed else None
        show([{"detector": wanted.detector, **more, "observed": seen}], output)
    else:
        typer.echo(said)


def await_quietly(control: "Control", wanted: "DeploymentSpec", timeout: float) -> None:
    """Waits for a change that is only a step of another one; raises as `Control.await_outcome` does."""
    control.await_outcome(wanted, timeout, _Progress().tell)


def show_changes(detector: str, changes: list[dict[str, Any]], final: bool, output: Format) -> None:
    """As a table at once; as JSON only if nothing else follows, so that there is one answer."""
    if output is not Format.JSON:
        show(changes, output)
    elif final:
        show([{"detector": detector, "changes": changes, "observed": None}], output)


class _Progress:
    """One line on standard error for every step, with the seconds since the beginning."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._last = ""

    def tell(self, observed: "DeploymentStatus") -> None:
        step = f"{observed.phase}{': ' + observed.reason if observed.reason else ''}"
        if step != self._last:
            self._last = step
            print(f"{time.monotonic() - self._began:5.1f} s  {step}", file=sys.stderr, flush=True)

    def summary(self, wanted: "DeploymentSpec", observed: "DeploymentStatus") -> str:
        from lozenge_deploy.control.records import places

        took = f"{time.monotonic() - self._began:.1f} s"
        if wanted.goal != "running":
            return f"{wanted.detector} is {wanted.goal} ({took})"
        since = f" from {places(observed.since)} on" if observed.since else ""
        watched = f"; watched for {wanted.watch / 60:.0f} min" if observed.outcome == "watched" else ""
        return (
            f"{wanted.detector} {observed.release} is live, generation {observed.generation}, "
            f"settings {observed.digest}{since} ({took}){watched}"
        )
