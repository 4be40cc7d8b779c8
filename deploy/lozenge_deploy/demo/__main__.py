"""`python -m lozenge_deploy.demo`: the whole platform on this machine, with a live view.

It runs until Ctrl-C. With `--for` it runs unattended: once the feed has ended and the platform is drained, it prints a
reconciliation and ends with 1 if a check fails. Other exit codes are those of `lozenge.errors`; 124 if the platform
was not drained in time, 130 if `--for` was interrupted.
"""

import json
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
from lozenge.process.shutdown import StopSignal
from lozenge_deploy.demo import reconciliation
from lozenge_deploy.demo.scenario import Scenario, ScenarioPlan, result
from lozenge_deploy.demo.sinks.extras import Extra, extras
from lozenge_deploy.demo.view import draw, plain
from lozenge_deploy.releases.build import CHECKOUT
from lozenge_deploy.releases.detector_catalog import DetectorFolder, detectors_in

TICK_SECONDS = 0.5
PLAIN_SECONDS = 5.0
DRAIN_SECONDS = 300.0
DRAIN_RECORDS_PER_SECOND = 2_000
"""How long draining may take: five minutes, and more after a long history."""
SINK_SECONDS = 120.0
"""So much longer for each extra: sinks start after the detectors, and an archive commits once a minute."""
TIMEOUT, INTERRUPTED = 124, 130
ALL = "all"


class ReportFormat(StrEnum):
    """How the reconciliation is printed."""

    table = "table"
    json = "json"


class Screen:
    """Shows frames: live on a terminal, otherwise a line every few seconds; always on standard error."""

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

    def show(self, scenario: Scenario, notice: str = "") -> None:
        """Draws the present state."""
        if self._live:
            self._live.update(draw(scenario.frame(notice)), refresh=True)
        elif time.monotonic() >= self._next:
            self._next = time.monotonic() + PLAIN_SECONDS
            print(plain(scenario.frame(notice)), file=sys.stderr, flush=True)


def run(
    for_: Annotated[
        str, typer.Option("--for", help="Live time, such as 60s, then a reconciliation. By default until Ctrl-C.")
    ] = "",
    rate: Annotated[float, typer.Option(min=0, help="Live records per second; 0 for as fast as possible.")] = 50,
    seed: Annotated[int, typer.Option(help="Seed of the generated traffic.")] = 7,
    past: Annotated[int, typer.Option(min=0, help="Records of history before the live traffic.")] = 20_000,
    detectors: Annotated[
        str, typer.Option(help="The detectors that run, with commas between their names, or all.")
    ] = ALL,
    with_: Annotated[
        str, typer.Option("--with", help=f"What runs too, with commas between the names: {', '.join(Extra)}.")
    ] = "",
    keep: Annotated[Path | None, typer.Option(help="Work in this new folder and keep it: topics, logs, store.")] = None,
    plain: Annotated[bool, typer.Option("--plain", help="A line every few seconds instead of the live view.")] = False,
    output: Annotated[
        ReportFormat, typer.Option("--output", "-o", help="The form of the reconciliation.")
    ] = ReportFormat.table,
    debug: Annotated[bool, typer.Option("--debug", help="Show the stack trace of an error.")] = False,
) -> None:
    """Starts broker, feed, upstream, every detector, downstream and a webhook receiver, and shows them running."""
    began, stop = time.monotonic(), StopSignal()
    try:
        plan = ScenarioPlan(_chosen(detectors), past, rate, seed, _seconds(for_), extras(with_))
        with ExitStack() as stack:
            work = (
                _new_folder(keep) if keep else Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lozenge-")))
            )
            scenario = stack.enter_context(Scenario(plan, began))
            scenario.start(work)
            print(f"commands reach the demo by LOZENGE_KAFKA_BOOTSTRAP={scenario.kafka.bootstrap}", file=sys.stderr)
            with Screen(live=not plain and sys.stderr.isatty()) as screen:
                code = _watch(scenario, plan, screen, stop)
            if code is None:
                code = _reconcile(scenario, plan, output)
    except LozengeError as error:
        if debug:
            raise
        print(error, file=sys.stderr)
        code = INTERRUPTED if stop.requested else error.exit_code
    raise typer.Exit(code)


def _watch(scenario: Scenario, plan: ScenarioPlan, screen: Screen, stop: StopSignal) -> int | None:
    """Until Ctrl-C or, unattended, until everything is drained; returns the exit code if the run ends here."""
    drained_by = None
    while not stop.requested:
        scenario.tick()
        if plan.seconds is not None and (failed := scenario.failed()):
            name, error = next(iter(failed.items()))
            raise Fatal(f"running the demo: {name} has failed: {error}", hint="see its log; --keep DIR keeps the logs")
        notice = ""
        if scenario.feed_ended and plan.seconds is not None:
            drained_by = drained_by or scenario.milestones.elapsed + _drain_seconds(plan)
            notice = "the feed has ended, draining"
            if scenario.is_drained():
                return None
            if scenario.milestones.elapsed > drained_by:
                lags = ", ".join(f"{name} {lag}" for name, lag in scenario.drain.lags().items()) or "none"
                print(f"not drained in time; lag: {lags}", file=sys.stderr)
                return TIMEOUT
        screen.show(scenario, notice)
        time.sleep(TICK_SECONDS)
    return INTERRUPTED if plan.seconds is not None else 0


def _drain_seconds(plan: ScenarioPlan) -> float:
    return DRAIN_SECONDS + plan.past / DRAIN_RECORDS_PER_SECOND + SINK_SECONDS * len(plan.extras)


def _reconcile(scenario: Scenario, plan: ScenarioPlan, output: ReportFormat) -> int:
    scenario.stop_jobs()
    receiver = scenario.receiver.url
    checks = reconciliation.reconciliation_of(scenario.kafka, scenario.summary, receiver, plan.detectors)
    checks += scenario.extras.comparisons(scenario.kafka)
    outcome = result(reconciliation.as_rows(checks), scenario)
    if output is ReportFormat.json:
        print(json.dumps(outcome, indent=1))
    else:
        Console().print(reconciliation.table(checks))
        Console().print(", ".join(f"{name} {at:.1f} s" for name, at in scenario.milestones.seconds.items()))
    return 0 if outcome["ok"] else 1


def _chosen(names: str) -> list[DetectorFolder]:
    found = detectors_in(CHECKOUT / "detectors")
    wanted = {name.strip() for name in names.split(",")}
    if unknown := sorted(wanted - {detector.name for detector in found} - {ALL}):
        have = ", ".join(detector.name for detector in found)
        raise UsageError(f"reading --detectors: there is no {', '.join(unknown)}", hint=f"name some of {have}")
    return found if ALL in wanted else [detector for detector in found if detector.name in wanted]


def _seconds(text: str) -> float | None:
    try:
        return duration(text).total_seconds() if text else None
    except ValueError as error:
        raise UsageError(f"reading --for: {error}") from error


def _new_folder(folder: Path) -> Path:
    """The absolute path; a used folder would mix two runs in one reconciliation."""
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"keeping the run in {folder}: it is not empty", hint="name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(run)
    app()
