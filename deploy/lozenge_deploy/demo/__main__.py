"""`python -m lozenge_deploy.demo`: the whole diamond on this machine, with a live view.

Runs until Ctrl-C. With `--for` it runs unattended: when the feed has ended and everything has come
through it prints a balance, and ends with 1 if something does not add up. Other exit codes are those of
`lozenge.errors`; 124 if the diamond did not come to rest in time, 130 if `--for` was interrupted.
"""

import json
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live

from lozenge.durations import duration
from lozenge.errors import Fatal, LozengeError, UsageError
from lozenge_deploy.demo import reconciliation
from lozenge_deploy.demo.scenario import Diamond, Plan, result
from lozenge_deploy.demo.view import draw, plain
from lozenge_deploy.releases.build import CHECKOUT
from lozenge_deploy.releases.detector_catalog import detectors_in

TICK_SECONDS = 0.5
PLAIN_SECONDS = 5.0
REST_SECONDS = 300.0
REST_RECORDS_PER_SECOND = 2_000
"""How long the diamond may take to come to rest: five minutes, and more after a long past."""
TIMEOUT, INTERRUPTED = 124, 130


class Output(StrEnum):
    """How the balance is printed."""

    table = "table"
    json = "json"


class Stop:
    """Set by SIGINT or SIGTERM; looked at between steps, so that no child is ever forgotten half-started."""

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask)

    def _ask(self, *_: object) -> None:
        self.asked = True


class Screen:
    """Shows scenes: live on a terminal, else a line now and then; always on standard error."""

    def __init__(self, *, live: bool) -> None:
        console = Console(stderr=True)
        self._live = Live(console=console, auto_refresh=False, transient=False) if live else None
        self._next = 0.0

    def __enter__(self) -> "Screen":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def show(self, diamond: Diamond, notice: str = "") -> None:
        """Draws the diamond as it is now."""
        if self._live:
            self._live.update(draw(diamond.scene(notice)), refresh=True)
        elif time.monotonic() >= self._next:
            self._next = time.monotonic() + PLAIN_SECONDS
            print(plain(diamond.scene(notice)), file=sys.stderr, flush=True)


def run(
    for_: Annotated[
        str, typer.Option("--for", help="Live time, such as 60s; then the balance. Else until Ctrl-C.")
    ] = "",
    rate: Annotated[float, typer.Option(min=0, help="Live records per second; 0 for as fast as possible.")] = 50,
    seed: Annotated[int, typer.Option(help="Of the generated traffic.")] = 7,
    past: Annotated[int, typer.Option(min=0, help="Records of history before the live traffic.")] = 20_000,
    keep: Annotated[
        Path | None, typer.Option(help="Work in this new folder and leave it: topics, logs, store.")
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="A line now and then instead of the live view.")] = False,
    output: Annotated[Output, typer.Option("--output", "-o", help="The form of the balance.")] = Output.table,
    debug: Annotated[bool, typer.Option("--debug", help="Errors with their stack trace.")] = False,
) -> None:
    """Starts broker, feed, upstream, every detector, downstream and a webhook receiver, and shows them at work."""
    began, stop = time.monotonic(), Stop()
    try:
        plan = Plan(detectors_in(CHECKOUT / "detectors"), past, rate, seed, _seconds(for_))
        with ExitStack() as stack:
            work = (
                _new_folder(keep) if keep else Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lozenge-")))
            )
            diamond = stack.enter_context(Diamond(plan, work, began))
            diamond.start()
            with Screen(live=not plain and sys.stderr.isatty()) as screen:
                code = _watch(diamond, plan, screen, stop)
            if code is None:
                code = _balance(diamond, plan, output)
    except LozengeError as error:
        if debug:
            raise
        print(error, file=sys.stderr)
        code = INTERRUPTED if stop.asked else error.exit_code
    raise typer.Exit(code)


def _watch(diamond: Diamond, plan: Plan, screen: Screen, stop: Stop) -> int | None:
    """Until Ctrl-C or, unattended, until all is at rest; the exit code if the run ends here."""
    rest_by = None
    while not stop.asked:
        diamond.tick()
        if plan.seconds is not None and (failed := diamond.failed()):
            name, words = next(iter(failed.items()))
            raise Fatal(f"running the demo: {name} has given up: {words}", hint="see its log; --keep DIR keeps them")
        notice = ""
        if diamond.feed_ended and plan.seconds is not None:
            rest_by = rest_by or diamond.elapsed + REST_SECONDS + plan.past / REST_RECORDS_PER_SECOND
            notice = "the feed has ended, the rest comes through"
            if diamond.come_through():
                return None
            if diamond.elapsed > rest_by:
                waits = ", ".join(f"{name} by {lag}" for name, lag in diamond.drain.behind().items()) or "nothing"
                print(f"The diamond did not come to rest in time; behind: {waits}", file=sys.stderr)
                return TIMEOUT
        screen.show(diamond, notice)
        time.sleep(TICK_SECONDS)
    return INTERRUPTED if plan.seconds is not None else 0


def _balance(diamond: Diamond, plan: Plan, output: Output) -> int:
    diamond.stop_jobs()
    folder = plan.detectors[0].folder.parent
    lines = reconciliation.balance_of(diamond.kafka, diamond.summary, diamond.receiver.url, folder)
    outcome = result(reconciliation.as_json(lines), diamond)
    if output is Output.json:
        print(json.dumps(outcome, indent=1))
    else:
        Console().print(reconciliation.table(lines))
        Console().print(", ".join(f"{name} {at:.1f} s" for name, at in diamond.milestones.items()))
    return 0 if outcome["holds"] else 1


def _seconds(text: str) -> float | None:
    try:
        return duration(text).total_seconds() if text else None
    except ValueError as error:
        raise UsageError(f"reading --for: {error}") from error


def _new_folder(folder: Path) -> Path:
    """An absolute path; a used folder would mix two runs in one balance."""
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"keeping the run in {folder}: it is not empty", hint="name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(run)
    app()
