"""`lozenge source`: deploys file sources, changes them while they run, and shows what became of each file."""

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lozenge.errors import LozengeError, UsageError
from lozenge.protocol.file_positions import FileState
from lozenge_deploy.cli.options import DRY_RUN, OUTPUT
from lozenge_deploy.cli.printing.output import OutputFormat, say, show
from lozenge_deploy.cli.printing.terminal import echo
from lozenge_deploy.cli.source.draft import new
from lozenge_deploy.cli.wait import MESSAGE

if TYPE_CHECKING:
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.protocol.source_requests import SourceRow, SourceState
    from lozenge_deploy.observe.metrics_reader import MetricsReader

RATE_SECONDS = 1.2
app = typer.Typer(help="Files into raw topics, each row once.", no_args_is_help=True)
app.command()(new)
NAME = Annotated[str, typer.Argument(metavar="NAME", help="A file source: a folder of upstream/sources.")]
SKIP_FILES = Annotated[
    bool, typer.Option("--skip-files", help="Do not check the files first: this machine cannot reach them.")
]
SOURCE_BRIEF = (
    *("source", "phase", "release", "instances", "waiting", "copying", "done", "failed", "rows", "bad", "per_second"),
)
FILE_BRIEF = ("file", "state", "rows", "share", "bad", "at", "reason")


@app.command()
def check(name: NAME, output: OUTPUT = OutputFormat.TABLE) -> None:
    """Check source.toml, and the newest files of the source against it. No broker is needed; nothing is written.

    Exit code 1: a file differs, and would fail; 2: the declaration is wrong.
    """
    from lozenge.file_sources.folder import read, sources_folder
    from lozenge_deploy.operations.file_sources.files_check import look_of

    source = read(sources_folder() / name)
    found = look_of(name, f"checking the file source {name}")
    if found or output is OutputFormat.JSON:
        show(found, output)
    else:
        echo(f"{name}: no complete file matches {source.path}")
    if bad := [each for each in found if each["problem"]]:
        raise LozengeError(
            f"checking the files of {name}: {len(bad)} of {len(found)} would fail",
            hint="change the columns in source.toml, or the files",
        )


@app.command("ls")
def list_(output: OUTPUT = OutputFormat.TABLE) -> None:
    """List the file sources of the project and those that are deployed, with the number of files by state."""
    import time

    from lozenge.file_sources.folder import names_in, sources_folder
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.observe.metrics_reader import MetricsReader
    from lozenge_deploy.operations.file_sources.requests import requests_of_sources

    kafka = KafkaSettings.load()
    states = {name: each for name, each in requests_of_sources(kafka).states().items() if each.request is not None}
    names = sorted({*names_in(sources_folder()), *states})
    if not names and output is not OutputFormat.JSON:
        echo("there are no file sources; `lozenge source new` drafts one from a file")
        return
    with closing(MetricsReader(kafka)) as metrics:
        metrics.catch_up()
        time.sleep(RATE_SECONDS)  # a rate needs two snapshots of each process
        metrics.read()
        show([_row(kafka, name, states.get(name), metrics) for name in names], output, brief=SOURCE_BRIEF)


def _row(kafka: "KafkaSettings", name: str, state: "SourceState | None", metrics: "MetricsReader") -> dict[str, Any]:
    import time

    from lozenge.apps import file_source_app
    from lozenge_deploy.operations.file_sources.report import source_row
    from lozenge_deploy.operations.file_sources.requests import positions_of

    name_of_app = file_source_app(name)
    app, reading = metrics.table.get(name_of_app), metrics.reading(name_of_app)
    samples = app.samples(time.time()) if app is not None else {}
    return source_row(name, state, positions_of(kafka, name), samples, reading.rate if reading is not None else 0.0)


@app.command()
def files(
    name: NAME,
    state: Annotated[FileState | None, typer.Option(help="Only files in this state.")] = None,
    count: Annotated[int, typer.Option("-n", min=1, help="At most so many, the latest.")] = 50,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """List the files of a source of which something was copied, with rows, bad rows, and why one has failed."""
    from lozenge.file_sources.folder import names_in, sources_folder
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.operations.file_sources.report import file_row
    from lozenge_deploy.operations.file_sources.requests import positions_of

    known = positions_of(KafkaSettings.load(), name)
    if not known and name not in names_in(sources_folder()):
        raise UsageError(f"listing the files of {name}: there is no such source", hint="`lozenge source ls` lists all")
    found = [each for each in known if state is None or each.state is state]
    latest = sorted(found, key=lambda position: position.at)[-count:]
    show([file_row(position) for position in latest], output, brief=FILE_BRIEF)


@app.command()
def deploy(
    name: NAME,
    message: MESSAGE = "",
    skip_files: SKIP_FILES = False,
    dry_run: DRY_RUN = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Release source.toml. A running source takes it after its present transaction, at the next row.

    The newest files are checked first, as by `check`: if one that is still to be copied would fail, nothing changes.
    Exit code 1: a file would fail; 2: the declaration is wrong, or the folder of the files is missing.
    """
    from lozenge.file_sources.folder import read, sources_folder
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.operations.file_sources.changes import deployment_of
    from lozenge_deploy.operations.file_sources.files_check import look_of, require_good
    from lozenge_deploy.operations.file_sources.requests import positions_of, prepare_topics

    source, kafka, doing = read(sources_folder() / name), KafkaSettings.load(), f"deploying the file source {name}"
    if not skip_files:
        require_good(look_of(name, doing), lambda: positions_of(kafka, name), doing)
    prepare_topics(kafka, source, dry_run=dry_run)
    _make(name, "deploy", lambda state: deployment_of(state, source, message), {"reason": message}, dry_run, output)


@app.command()
def rollback(
    name: NAME,
    to: Annotated[str, typer.Option(help="A release such as r2; by default the one before.")] = "",
    dry_run: DRY_RUN = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Request an earlier release of a source. What was copied stays; the next row is read by that release."""
    from lozenge_deploy.operations.file_sources.changes import rollback_of

    _make(name, "rollback", lambda state: rollback_of(state, to), {"to": to}, dry_run, output)


@app.command("set")
def set_(
    name: NAME,
    rate: Annotated[float, typer.Option(min=0, help="Rows a second of all instances, in equal parts; 0 for no limit.")],
    dry_run: DRY_RUN = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Change how fast a source copies, while it runs."""
    from lozenge_deploy.operations.file_sources.changes import rate_changed

    if rate != rate or rate == float("inf"):
        raise UsageError(f"reading --rate: {rate} is no rate", hint="write it as --rate 5000; 0 is no limit")
    _make(name, "set", lambda state: rate_changed(state, rate), {"rate": rate}, dry_run, output)


@app.command()
def pause(name: NAME, dry_run: DRY_RUN = False, output: OUTPUT = OutputFormat.TABLE) -> None:
    """Stop copying after the present transaction; instances keep their files."""
    from lozenge_deploy.operations.file_sources.changes import paused

    _make(name, "pause", lambda state: paused(state, True), {}, dry_run, output)


@app.command()
def resume(name: NAME, dry_run: DRY_RUN = False, output: OUTPUT = OutputFormat.TABLE) -> None:
    """Resume copying at the next row."""
    from lozenge_deploy.operations.file_sources.changes import paused

    _make(name, "resume", lambda state: paused(state, False), {}, dry_run, output)


@app.command()
def scale(
    name: NAME,
    instances: Annotated[int, typer.Option("--instances", min=1, help="How many processes share the files.")],
    dry_run: DRY_RUN = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Set how many instances share the files of a source. The platform starts and stops them."""
    from lozenge_deploy.operations.file_sources.changes import scaled

    _make(name, "scale", lambda state: scaled(state, instances), {"instances": instances}, dry_run, output)


@app.command()
def retry(
    name: NAME,
    paths: Annotated[list[str] | None, typer.Argument(metavar="[FILE]...", help="Failed files; all of them.")] = None,
    from_start: Annotated[bool, typer.Option(help="Copy all rows again, not only those that are left.")] = False,
    dry_run: DRY_RUN = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Try failed files again: at the row after the last that was copied, if the file is the same."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.operations.file_sources.changes import retried
    from lozenge_deploy.operations.file_sources.requests import positions_of

    positions = positions_of(KafkaSettings.load(), name)
    detail = {"files": paths or [], "from_start": from_start}
    _make(
        name,
        "retry",
        lambda state: retried(state, positions, paths or [], from_start=from_start),
        detail,
        dry_run,
        output,
    )


@app.command()
def retire(name: NAME, dry_run: DRY_RUN = False, output: OUTPUT = OutputFormat.TABLE) -> None:
    """Stop a source and withdraw its request. Its positions stay: the next deploy resumes at the next row."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.operations.file_sources.requests import requests_of_sources

    requests = requests_of_sources(KafkaSettings.load())
    if requests.state_of(name).request is None:
        raise UsageError(f"retiring the file source {name}: it is not deployed", hint="`lozenge source ls` lists all")
    if not dry_run:
        requests.retire(name, action="source retire")
    say(f"{name}: {'would be ' if dry_run else ''}retired; its positions stay", {"source": name}, output)


@app.command()
def history(name: NAME, output: OUTPUT = OutputFormat.TABLE) -> None:
    """List the releases of a source: who made each, when and why."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.operations.declarations.releases import history_rows
    from lozenge_deploy.operations.file_sources.changes import words_of
    from lozenge_deploy.operations.file_sources.requests import requests_of_sources

    state = requests_of_sources(KafkaSettings.load()).state_of(name)
    show(history_rows(state, words_of(name), lambda release: {"path": release.declaration.get("path")}), output)


def _make(
    name: str,
    what: str,
    decide: "Callable[[SourceState], list[SourceRow]]",
    detail: dict[str, Any],
    dry_run: bool,
    output: OutputFormat,
) -> None:
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.protocol.source_requests import SourceRequest
    from lozenge_deploy.operations.file_sources.requests import requests_of_sources

    requests = requests_of_sources(KafkaSettings.load())
    made = requests.make(name, decide, action=f"source {what}", detail=detail, dry_run=dry_run)
    request = next(row for row in made if isinstance(row, SourceRequest))
    speed = f"{request.rate:g} rows a second" if request.rate else "no limit of speed"
    phase = "paused" if request.paused else "running"
    many = f"{request.instances} instance{'s' if request.instances > 1 else ''}"
    said = f"r{request.release}, {many}, {speed}, {phase}"
    row = {"source": name, "release": request.release, "instances": request.instances, "rate": request.rate}
    more = {"paused": request.paused, "retries": sorted(request.retries)}
    say(f"{name}: {'would be ' if dry_run else ''}{said}", {**row, **more}, output)
