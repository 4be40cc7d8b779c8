"""The verbs about what a detector has judged and judges next: offsets, coverage, fill."""

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lozenge.errors import UsageError
from lozenge_deploy.cli.options import DRY_RUN, NAME, OUTPUT, Format, app_of, seconds_of, show, tell
from lozenge_deploy.cli.wait import MESSAGE, TIMEOUT, await_change, await_quietly, show_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.control.client import Control
    from lozenge_deploy.control.records import DeploymentSpec
    from lozenge_deploy.operations.offset_reset import Move


def offsets(
    name: NAME = ".",
    to: Annotated[str | None, typer.Option(help='Offsets by partition: "0:9120 1:88"; others stay.')] = None,
    at: Annotated[str | None, typer.Option(help='What was written since then: "2h" ago, or 2026-11-20T12:00.')] = None,
    earliest: Annotated[bool, typer.Option("--earliest", help="All that is retained.")] = False,
    latest: Annotated[bool, typer.Option("--latest", help="Only what comes from now on.")] = False,
    state: Annotated[str | None, typer.Option(help="What it then remembers: rebuild or fresh.")] = None,
    message: MESSAGE = "",
    dry_run: DRY_RUN = False,
    timeout: TIMEOUT = "10m",
    output: OUTPUT = Format.TABLE,
) -> None:
    """Show where a detector stands on its input; or end it at a batch boundary, move it, and let it go on there."""
    from lozenge.contracts import topics
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.kafka.topic_reader import offsets_at
    from lozenge_deploy.control.client import Control
    from lozenge_deploy.operations import offset_reset
    from lozenge_deploy.operations.scaling import refused
    from lozenge_deploy.releases.release_store import Releases

    def planned() -> "Move":
        there = offset_reset.standing_on(kafka, detector, topic)
        if to is not None:
            target = offset_reset.given(to)
        elif moment is not None:
            target = offsets_at(kafka, topic, len(there), moment)
        else:
            target = {place.partition: place.earliest if earliest else place.end for place in there}
        return offset_reset.planned(release, there, target, state)

    asked = [option for option in (to, at, earliest or None, latest or None) if option is not None]
    if len(asked) > 1:
        raise UsageError(f"moving {name}: more than one place is given", hint="one of --to, --at, --earliest, --latest")
    if state is not None and not asked:
        raise UsageError(
            f"moving {name}: --state is given, and no place", hint="add --to, --at, --earliest or --latest"
        )
    moment = offset_reset.moment_of(at) if at is not None else None
    kafka, detector, limit = KafkaSettings.load(), app_of(name), seconds_of(timeout, "--timeout")
    with Control(kafka) as control:
        present = control.deployed(detector)
        release = Releases(kafka).get(detector, present.release)
        topic = topics.events_by(release.declaration.key)
        if not asked:
            there = offset_reset.standing_on(kafka, detector, topic)
            show([vars(place) | {"behind": place.end - (place.next or place.earliest)} for place in there], output)
            return
        move = planned()
        if refusal := refused(release, present.instances, move.state):
            raise refusal
        show_changes(detector, move.changes(), dry_run, output)
        if not dry_run:
            _move(control, kafka, present, move, planned, message, limit, output)


def _move(
    control: "Control",
    kafka: "KafkaSettings",
    present: "DeploymentSpec",
    move: "Move",
    planned: "Callable[[], Move]",
    message: str,
    limit: float,
    output: Format,
) -> None:
    """`planned` tells the move anew once nothing of the detector runs: until then it has gone on judging."""
    from lozenge_deploy.operations import offset_reset

    deadline = time.monotonic() + limit
    # wished before the move: whatever happens then, no process takes the old memory to the new offsets
    memory: dict[str, Any] = {"state": move.state, "restart": present.restart + 1} if move.memory else {}
    with _ended(control, present, memory, message, limit) as ended:
        move = planned()
        said = offset_reset.commit(kafka, move)
    wanted = control.change(ended, "offsets", f"{said}; {message}" if message else said, goal=present.goal, before=None)
    await_change(control, wanted, max(1.0, deadline - time.monotonic()), output, changes=move.changes())


@contextmanager
def _ended(
    control: "Control", present: "DeploymentSpec", memory: dict[str, Any], message: str, limit: float
) -> "Iterator[DeploymentSpec]":
    """For the length of the block nothing of the detector runs; it goes on as before if that fails.

    What runs next begins with `memory`.
    """
    goal = "paused" if present.goal == "running" else present.goal
    stopped = control.change(present, "pause", message or "to move its offsets", goal=goal, before=None, **memory)
    try:
        await_quietly(control, stopped, limit)
        yield stopped
    except BaseException:
        typer.echo(f"the offsets of {present.detector} were not moved; it goes on as before", err=True)
        as_before = {"state": control.pending(present), "restart": present.restart}
        control.change(stopped, "resume", "its offsets were not moved", goal=present.goal, before=None, **as_before)
        raise


def coverage(
    name: NAME = ".",
    place: Annotated[
        str | None, typer.Argument(metavar="PARTITION:OFFSET", help="An event of its input: who judged it?")
    ] = None,
    output: OUTPUT = Format.TABLE,
) -> None:
    """Show which release judged which events under which settings, what nobody judged, and what was judged twice."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.observe.coverage_report import covered, rows_of, verdict
    from lozenge_deploy.observe.dead_letter_report import put_aside

    kafka, detector = KafkaSettings.load(), app_of(name)
    intervals = covered(kafka, detector)
    if place is None:
        show(rows_of(intervals), output)
        return
    found = verdict(intervals, place)
    aside = put_aside(kafka, detector, (found["partition"], found["offset"]))
    said = "; ".join(filter(None, [found["verdict"], aside]))
    tell(f"{detector} {place}: {said}", {**found, "put_aside": aside or None}, output)


def fill(name: NAME = ".", dry_run: DRY_RUN = False, output: OUTPUT = Format.TABLE) -> None:
    """Judge what nobody judged, by the release and settings that are wanted now, beside the job that runs."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.control.client import Control
    from lozenge_deploy.observe.coverage_report import covered, gap_rows
    from lozenge_deploy.releases import detector_process
    from lozenge_deploy.releases.release_store import Releases, environment_for

    kafka, detector = KafkaSettings.load(), app_of(name)
    with Control(kafka) as control:
        present = control.deployed(detector)
    rows = gap_rows(covered(kafka, detector))
    if dry_run or not rows:
        show(rows, output) if rows or output is Format.JSON else typer.echo(f"{detector}: no gaps")
        return
    releases = Releases(kafka)
    python = environment_for(releases.get(detector, present.release), releases)
    steps = []
    for step in detector_process.filled(detector, python, kafka, present.release, present.settings):
        steps.append(step)
        typer.echo(f"{step['events']} events, {step['alerts']} alerts; {step['left']} events to go", err=True)
    judged = {what: sum(step[what] for step in steps) for what in ("events", "alerts", "dead_letters")}
    told = judged | {"gone": max((step["gone"] for step in steps), default=0)}
    if output is Format.JSON:
        show([{"detector": detector, "release": present.release, **told}], output)
        return
    gone = f"; {told['gone']} events are retained no longer" if told["gone"] else ""
    typer.echo(f"{detector} {present.release} judged {told['events']} events, raised {told['alerts']} alerts{gone}")
