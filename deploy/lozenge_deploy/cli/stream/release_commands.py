"""Releases of a stream: plan, deploy, rollback, releases, history."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lozenge.errors import BrokerUnavailable, ConfigError
from lozenge_deploy.cli.options import DRY_RUN, OUTPUT, seconds_of
from lozenge_deploy.cli.printing.output import OutputFormat, say, show, show_readable
from lozenge_deploy.cli.printing.terminal import echo
from lozenge_deploy.cli.stream.samples import TEST, require_passed
from lozenge_deploy.cli.wait import MESSAGE, TIMEOUT, WAIT, interruptible, show_rows

if TYPE_CHECKING:
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.protocol.stream_releases import StreamDeployment

NAME = Annotated[str, typer.Argument(metavar="NAME", help="A stream.")]
MOMENT = 'such as "2h" ago, or 2026-11-20T12:00'


def plan(
    name: NAME,
    last: Annotated[str, typer.Option(help='Raw records of the last time, such as "1h".')] = "1h",
    since: Annotated[
        str | None, typer.Option("--from", help=f"Instead of --last: records written since, {MOMENT}.")
    ] = None,
    until: Annotated[str | None, typer.Option("--to", help=f"Records written until, {MOMENT}; by default now.")] = None,
    records: Annotated[
        int, typer.Option("-n", min=1, max=200_000, help="At most so many of each topic, the newest.")
    ] = 10_000,
    examples: Annotated[int, typer.Option(min=0, help="How many examples of each kind to show.")] = 3,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Show what of the recent raw records would change if the stream's folder were deployed; change nothing."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.streams.project import Streams
    from lozenge_deploy.operations.offset_reset import moment_of
    from lozenge_deploy.operations.streams.known_streams import with_folder
    from lozenge_deploy.operations.streams.release_plan import plan as compared
    from lozenge_deploy.operations.streams.release_plan import sentences

    begin = moment_of(since, "--from") if since else datetime.now(UTC) - timedelta(seconds=seconds_of(last, "--last"))
    kafka = KafkaSettings.load()
    definition = with_folder(kafka, Streams.load(), name)
    found = compared(kafka, definition, (begin, moment_of(until, "--to") if until else None), records, examples)
    if output is OutputFormat.JSON:
        show([{"stream": definition.name, **found}], output)
        return
    for line in sentences(found):
        echo(line)
    if found["examples"]:
        show(found["examples"], output)


def deploy(
    name: NAME,
    test: TEST = True,
    message: MESSAGE = "",
    dry_run: DRY_RUN = False,
    wait: WAIT = True,
    timeout: TIMEOUT = "10m",
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Release a stream's folder. The running upstream takes it at an exact raw offset, if all of it is good.

    Its samples run first, as `lozenge stream test` runs them. Exit code 1: something else becomes of one, or upstream
    refuses the release; the one before stays in force.
    """
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.streams.project import Streams
    from lozenge.streams.release_files import files_of
    from lozenge_deploy.observe.stream_history import coverage_end
    from lozenge_deploy.operations.streams import release_deploy
    from lozenge_deploy.operations.streams.known_streams import with_folder
    from lozenge_deploy.operations.streams.upstream_tools import check_mappings

    kafka, limit = KafkaSettings.load(), seconds_of(timeout, "--timeout") if wait else None
    streams = Streams.load()
    definition = with_folder(kafka, streams, name)
    files = files_of(streams.folder / definition.name)
    candidate = release_deploy.prepare(kafka, definition, files)
    if test and candidate.refusal is None:
        require_passed(definition.name, output)  # that plans the mappings too
    else:
        check_mappings(definition.name)
    _show_changes(name, candidate.changes, dry_run and candidate.refusal is None, output)
    if candidate.refusal is not None:
        raise candidate.refusal
    if dry_run:
        return
    covered = coverage_end(kafka, definition.app)
    wanted = release_deploy.request(kafka, candidate, message, tested=test)
    _await(kafka, wanted, definition.app, definition.raw_topics, covered, limit, output, candidate.changes)


def rollback(
    name: NAME,
    to: Annotated[str, typer.Option(help='A release such as r2, or "folder"; by default the one before.')] = "",
    message: MESSAGE = "",
    dry_run: DRY_RUN = False,
    wait: WAIT = True,
    timeout: TIMEOUT = "10m",
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Put an earlier release of a stream in force, at an exact raw offset."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.kafka.stream_releases import present_state
    from lozenge.protocol.stream_releases import release_name
    from lozenge.streams.release_files import definition_of
    from lozenge_deploy.observe.stream_history import coverage_end
    from lozenge_deploy.operations.streams import release_requests
    from lozenge_deploy.operations.streams.known_streams import kept_definition

    kafka, limit = KafkaSettings.load(), seconds_of(timeout, "--timeout") if wait else None
    try:
        state = present_state(kafka, name)
    except BrokerUnavailable:
        require_stream(name)
        raise
    if kept_definition(state) is None:
        require_stream(name)
    request, _ = release_requests.rollback_of(state, to, message)
    rows = [{"field": "release", "current": release_name(state.to_run), "new": release_name(request.release)}]
    _show_changes(name, rows, dry_run, output)
    if dry_run:
        return
    # the folder that upstream finds where it runs may be another one: any start of it counts
    earlier = state.releases.get(request.release)
    definition = definition_of((earlier or state.releases[state.to_run]).files, name)
    covered = coverage_end(kafka, definition.app)
    wanted = release_requests.make(kafka, name, lambda found: release_requests.rollback_of(found, to, message))
    topics = definition.raw_topics if earlier is not None else ()
    _await(kafka, wanted, definition.app, topics, covered, limit, output, rows)


def require_stream(name: str) -> None:
    """Raises UsageError with the streams of the project if it has none of this name; one that is wrong counts."""
    from lozenge.streams.project import Streams

    try:
        streams = Streams.load()
    except ConfigError:  # run outside of the project: the platform knows the stream, or says that it does not
        return
    if name not in streams.wrong:
        streams.get(name)


def releases(name: NAME, output: OUTPUT = OutputFormat.TABLE) -> None:
    """Show the releases of a stream, which is in force, and since which raw offsets."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.kafka.stream_releases import present_state
    from lozenge_deploy.observe.stream_history import changes, last_since, segments_since
    from lozenge_deploy.operations.streams.known_streams import normaliser_of
    from lozenge_deploy.operations.streams.release_table import BRIEF, release_rows

    kafka = KafkaSettings.load()
    since = last_since(changes(segments_since(kafka, normaliser_of(kafka, name))))
    rows = release_rows(present_state(kafka, name), since)
    show_readable(rows, output, f"{name} has no release", brief=BRIEF)


def history(name: NAME, output: OUTPUT = OutputFormat.TABLE) -> None:
    """Show every change of a stream's release, with the raw offsets from which on it was in force."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.observe.stream_history import change_rows, changes, segments_since
    from lozenge_deploy.operations.streams.known_streams import normaliser_of

    kafka = KafkaSettings.load()
    rows = change_rows(changes(segments_since(kafka, normaliser_of(kafka, name))))
    show_readable(rows, output, f"no upstream has run for {name}")


def _show_changes(stream: str, changes: list[dict[str, Any]], final: bool, output: OutputFormat) -> None:
    show_rows(changes, {"stream": stream, "changes": changes, "since": None}, final, output)


def _await(
    kafka: "KafkaSettings",
    wanted: "StreamDeployment",
    app: str,
    raw_topics: tuple[str, ...],
    covered: int,
    limit: float | None,
    output: OutputFormat,
    rows: list[dict[str, Any]],
) -> None:
    from lozenge.protocol.stream_releases import release_name
    from lozenge_deploy.observe.stream_history import since_text
    from lozenge_deploy.operations.streams.await_taking import await_taking

    stream, name = wanted.stream, release_name(wanted.release)
    row = {"stream": stream, "release": name, "revision": wanted.revision, "changes": rows}
    if limit is None:
        say(f"{stream}: {name} is requested; `lozenge stream releases {stream}` shows its progress", row, output)
        return
    with interruptible(f"lozenge stream releases {stream}"):
        since = await_taking(kafka, wanted, app, list(map(kafka.topics.prefixed, raw_topics)), covered, limit)
    say(f"{stream} {name} is in force from {since_text(since)}", row | {"since": since}, output)
