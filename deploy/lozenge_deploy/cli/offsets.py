"""Commands about what a detector has processed and processes next: offsets, coverage, backfill."""

import time
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lozenge.apps import is_upstream
from lozenge.errors import UsageError
from lozenge_deploy.cli.local import FOLDER, no_upstream
from lozenge_deploy.cli.options import DRY_RUN, NAME, OUTPUT, app_of, seconds_of
from lozenge_deploy.cli.printing.output import OutputFormat, say, show
from lozenge_deploy.cli.printing.terminal import echo
from lozenge_deploy.cli.wait import MESSAGE, TIMEOUT, await_change, await_quietly, show_changes
from lozenge_deploy.local.running_platform import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.control.client import Control
    from lozenge_deploy.control.records import DeploymentSpec
    from lozenge_deploy.operations.offset_reset import OffsetReset, PartitionProgress
    from lozenge_deploy.operations.raw_offset_reset import Target


def offsets(
    name: NAME = ".",
    to: Annotated[str | None, typer.Option(help='Offsets by partition: "0:9120 1:88"; others stay.')] = None,
    at: Annotated[str | None, typer.Option(help='Records written since then: "2h" ago, or 2026-11-20T12:00.')] = None,
    earliest: Annotated[bool, typer.Option("--earliest", help="All that is retained.")] = False,
    latest: Annotated[bool, typer.Option("--latest", help="Only new records.")] = False,
    state: Annotated[str | None, typer.Option(help="State policy: rebuild or fresh.")] = None,
    message: MESSAGE = "",
    dry_run: DRY_RUN = False,
    topic_: Annotated[str | None, typer.Option("--topic", help="Of a normaliser: one raw topic, else all.")] = None,
    timeout: TIMEOUT = "10m",
    folder: FOLDER = DEFAULT,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Show the offsets and lag of a detector or a normaliser; or stop it, reset its offsets and resume it there."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.control.client import Control
    from lozenge_deploy.operations import offset_reset
    from lozenge_deploy.operations.scaling import refused
    from lozenge_deploy.releases.release_store import Releases

    def plan() -> "OffsetReset":
        progress = offset_reset.progress_of(kafka, detector, topic)
        return offset_reset.plan_reset(release, topic, progress, _target(kafka, wanted)(topic, progress), state)

    targets = [option for option in (to, at, earliest or None, latest or None) if option is not None]
    if len(targets) > 1:
        raise UsageError(
            f"resetting offsets of {name}: more than one target", hint="use one of --to, --at, --earliest, --latest"
        )
    if state is not None and not targets:
        raise UsageError(
            f"resetting offsets of {name}: --state needs a target", hint="add --to, --at, --earliest or --latest"
        )
    moment = offset_reset.moment_of(at) if at is not None else None
    if moment is not None:
        echo(f"--at {at} is {moment:%Y-%m-%d %H:%M:%S} in UTC", err=True)
    wanted = _Wanted(to, moment, earliest=earliest)
    if is_upstream(name):
        if state is not None:
            raise UsageError(f"resetting offsets of {name}: it has no state", hint="omit --state")
        limit = seconds_of(timeout, "--timeout")
        _reset_upstream(KafkaSettings.load(), name, topic_, wanted if targets else None, folder, limit, dry_run, output)
        return
    if topic_ is not None:
        raise UsageError(f"resetting offsets of {name}: a detector reads one topic", hint="omit --topic")
    kafka, detector, limit = KafkaSettings.load(), app_of(name), seconds_of(timeout, "--timeout")
    with Control(kafka) as control:
        present = control.deployed(detector)
        release = Releases(kafka).get(detector, present.release)
        topic = release.stream.events(kafka.topics, release.declaration.key)
        if not targets:
            progress = offset_reset.progress_of(kafka, detector, topic)
            show([vars(each) | {"lag": each.lag} for each in progress], output)
            return
        reset = plan()
        if refusal := refused(release, present.instances, kafka.partitions, reset.state):
            raise refusal
        show_changes(detector, reset.changes(), dry_run, output)
        if not dry_run:
            _reset(control, kafka, present, reset, plan, message, limit, output)


def _reset(
    control: "Control",
    kafka: "KafkaSettings",
    present: "DeploymentSpec",
    reset: "OffsetReset",
    plan: "Callable[[], OffsetReset]",
    message: str,
    limit: float,
    output: OutputFormat,
) -> None:
    """Plans again once no job of the detector runs: until then its offsets have advanced."""
    from lozenge_deploy.operations import offset_reset

    deadline = time.monotonic() + limit
    # applied before the reset: no process can then take the old state to the new offsets
    state: dict[str, Any] = {"state": reset.state, "restart": present.restart + 1} if reset.consequence else {}
    with _stopped(control, present, state, message, limit) as stopped:
        reset = plan()
        what = offset_reset.commit(kafka, reset)
    why = f"{what}; {message}" if message else what
    wanted = control.change(stopped, "offsets", why, goal=present.goal, before=None)
    await_change(control, wanted, max(1.0, deadline - time.monotonic()), output, changes=reset.changes())


@contextmanager
def _stopped(
    control: "Control", present: "DeploymentSpec", state: dict[str, Any], message: str, limit: float
) -> "Iterator[DeploymentSpec]":
    """No job of the detector runs within the block; it resumes as before if the block fails.

    The next job begins with `state`.
    """
    goal = "paused" if present.goal == "running" else present.goal
    stopped = control.change(present, "pause", message or "to reset its offsets", goal=goal, before=None, **state)
    try:
        await_quietly(control, stopped, limit)
        yield stopped
    except BaseException:
        echo(f"the offsets of {present.detector} were not reset; it resumes as before", err=True)
        as_before = {"state": control.pending(present), "restart": present.restart}
        control.change(stopped, "resume", "its offsets were not reset", goal=present.goal, before=None, **as_before)
        raise


def coverage(
    name: NAME = ".",
    position: Annotated[
        str | None,
        typer.Argument(metavar="PARTITION:OFFSET", help="An input event: which release processed it?"),
    ] = None,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Show which release processed which events under which settings, with gaps and overlaps."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.observe.coverage_report import coverage_of, explain, raw_coverage, rows_of
    from lozenge_deploy.observe.dead_letter_report import dead_letter_of_event

    kafka, detector = KafkaSettings.load(), app_of(name)
    if is_upstream(detector):
        if position is not None:
            raise UsageError(
                f"looking for raw record {position}: no topic", hint=f"`lozenge coverage {detector}` shows all"
            )
        show(
            [{"topic": topic} | row for topic, found in raw_coverage(kafka, detector) for row in rows_of(found)], output
        )
        return
    intervals = coverage_of(kafka, detector)
    if position is None:
        show(rows_of(intervals), output)
        return
    found = explain(intervals, position)
    dead_letter = dead_letter_of_event(kafka, detector, (found["partition"], found["offset"]))
    sentence = "; ".join(filter(None, [found["status"], dead_letter]))
    say(f"{detector} {position}: {sentence}", {**found, "dead_letter": dead_letter or None}, output)


def backfill(name: NAME = ".", dry_run: DRY_RUN = False, output: OUTPUT = OutputFormat.TABLE) -> None:
    """Process the gaps in a detector's coverage with its present release and settings, alongside the live job."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.control.client import Control
    from lozenge_deploy.observe.coverage_report import coverage_of, gap_rows
    from lozenge_deploy.releases import detector_process
    from lozenge_deploy.releases.release_store import Releases, environment_for

    kafka, detector = KafkaSettings.load(), app_of(name)
    with Control(kafka) as control:
        present = control.deployed(detector)
    rows = gap_rows(coverage_of(kafka, detector))
    if dry_run or not rows:
        show(rows, output) if rows or output is OutputFormat.JSON else echo(f"{detector}: no gaps")
        return
    releases = Releases(kafka)
    python = environment_for(releases.get(detector, present.release), releases)
    steps = []
    for step in detector_process.backfill(detector, python, kafka, present.release, present.settings):
        steps.append(step)
        echo(f"{step['events']} events, {step['alerts']} alerts; {step['remaining']} events remaining", err=True)
    done = {what: sum(step[what] for step in steps) for what in ("events", "alerts", "dead_letters")}
    done |= {"expired": max((step["expired"] for step in steps), default=0)}
    gone = f"; {done['expired']} events are no longer retained" if done["expired"] else ""
    sentence = f"{detector} {present.release} processed {done['events']} events, emitted {done['alerts']} alerts{gone}"
    say(sentence, {"detector": detector, "release": present.release, **done}, output)


@dataclass(frozen=True)
class _Wanted:
    """The target that a person asks for: offsets, a moment, the earliest ones, or else the latest ones."""

    to: str | None
    moment: datetime | None
    earliest: bool


def _reset_upstream(
    kafka: "KafkaSettings",
    app: str,
    topic: str | None,
    wanted: _Wanted | None,
    folder: Path,
    limit: float,
    dry_run: bool,
    output: OutputFormat,
) -> None:
    """Shows the offsets of the normaliser `app`; or resets them to what is `wanted`, while no instance of it runs."""
    from lozenge_deploy.operations import raw_offset_reset as raw

    progress = raw.raw_progress(kafka, app, topic)
    if wanted is None:
        show([row for each in progress for row in _rows(each.topic, each.partitions)], output)
        return
    if wanted.to is not None and len(progress) > 1:
        topics = ", ".join(each.topic for each in progress)
        raise UsageError(
            f"resetting offsets of {app}: --to {wanted.to} names no topic", hint=f"add --topic, one of {topics}"
        )
    target = _target(kafka, wanted)
    resets = raw.plan(app, progress, target)
    changes = [row for reset in resets for row in _named(reset.topic, reset.changes())]
    show_changes(app, changes, dry_run, output)
    if dry_run:
        return
    with no_upstream(folder, app):
        raw.await_stopped(kafka, app, limit, lambda: echo(f"waiting until no instance of {app} runs", err=True))
        done = list(raw.commit(kafka, app, raw.plan(app, raw.raw_progress(kafka, app, topic), target)))
    say(f"{app}: {'; '.join(done)}", {"app": app, "resets": done}, output)


def _target(kafka: "KafkaSettings", wanted: _Wanted) -> "Target":
    from lozenge.contracts.record import parse_offsets
    from lozenge_deploy.operations.raw_offset_reset import at_moment

    if wanted.to is not None:
        offsets = parse_offsets(wanted.to)
        return lambda topic, progress: offsets
    if wanted.moment is not None:
        return at_moment(kafka, wanted.moment)
    return lambda topic, progress: {each.partition: each.earliest if wanted.earliest else each.end for each in progress}


def _named(topic: str, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row | {"field": f"{topic} {row['field']}"} for row in rows]


def _rows(topic: str, progress: "Sequence[PartitionProgress]") -> list[dict[str, Any]]:
    """A row for each partition. Records that are gone are part of the lag, since nobody has accepted their loss."""
    return [{"topic": topic, **vars(each), "lag": each.lag, "lost": each.lost} for each in progress]
