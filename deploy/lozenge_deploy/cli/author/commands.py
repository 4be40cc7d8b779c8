"""Commands for authors of detectors: new, check, test, try, dev."""

import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lozenge.contracts.detector_kind import DetectorKind
from lozenge.errors import DetectorError, LozengeError, UsageError
from lozenge.process.user_name import user_name
from lozenge_deploy.cli.options import (
    DRY_RUN,
    EXAMPLES,
    LAST,
    NAME,
    OUTPUT,
    SET,
    detectors_folder,
    folder_of,
    seconds_of,
    settings_of,
)
from lozenge_deploy.cli.printing.output import OutputFormat, show, show_backtest, show_warnings
from lozenge_deploy.cli.printing.terminal import echo

if TYPE_CHECKING:
    from lozenge_deploy.releases.test_report import ReportedTest


def new(
    name: Annotated[str, typer.Argument(help="Lower-case letters, digits and underscores.")],
    kind: Annotated[
        DetectorKind | None,
        typer.Option(help="One event at a time, counts in windows, or state per key. [default: rule]"),
    ] = None,
    key: Annotated[str, typer.Option(help="The entity of its alerts: a key of the stream, by default the first.")] = "",
    stream: Annotated[
        list[str] | None,
        typer.Option(help="The stream that it reads, else the default one. Several are read together, by --key."),
    ] = None,
    alerts_of: Annotated[
        str, typer.Option(metavar="DETECTOR", help="Instead of a stream: a detector whose alerts it reads.")
    ] = "",
    table: Annotated[
        list[Path] | None, typer.Option(help="A CSV or Parquet file to copy and declare. Once per table.")
    ] = None,
    owner: Annotated[str, typer.Option(help="The owner of its alerts; by default you.")] = "",
    dry_run: DRY_RUN = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Write the folder of a new detector, with tests that pass."""
    from lozenge.detector.input_stream import together
    from lozenge.streams.project import Streams
    from lozenge_deploy.cli.author.common_key import common_key
    from lozenge_deploy.cli.author.new_alert_input import new_alert_input
    from lozenge_deploy.cli.author.scaffold import contents, write

    detectors = detectors_folder()
    make = contents if dry_run else write
    streams = Streams.load(detectors)
    if alerts_of:
        of = new_alert_input(detectors, name, alerts_of, key, stream or ())
    else:
        named = [streams.get(each) for each in stream or [""]]
        key = common_key(f"making detector {name}", named, key)
        of = together(named, key)
    usual = DetectorKind.STATEFUL if of.members or of.alerts_of else DetectorKind.RULE
    files = make(detectors, name, kind or usual, owner or user_name(), of, key=key, tables=table or ())
    if output is OutputFormat.JSON:
        show([{"file": str(file), "bytes": len(content)} for file, content in files.items()], output)
        return
    for file in files:
        echo(f"{'would write' if dry_run else 'wrote'} {file.relative_to(detectors.parent)}")
    if not dry_run:
        echo(f"next: edit {name}.py, then `lozenge test {name}`", err=True)


def check(name: NAME = ".", set_: SET = None, output: OUTPUT = OutputFormat.TABLE) -> None:
    """Show everything that is wrong with a detector's folder, without running it.

    Warnings do not change the exit code. For Real-Time Mode it also asks Spark whether it can run the query, which
    takes some seconds. Values of --set are tried with the detector's own code, as `lozenge set` and its job try them.
    """
    from lozenge_deploy.releases.lint.folder import findings, require_sound

    folder, settings = folder_of(name), settings_of(set_)
    found = findings(folder)
    problems, warnings = found.problems, list(found.warnings)
    refused: LozengeError | None = None
    if not problems:
        try:
            warnings += _refused_by_code(folder, settings)
        except LozengeError as error:
            problems, refused = [str(error)], error
    if output is OutputFormat.JSON:
        rows = [("problem", problem) for problem in problems] + [("warning", warning) for warning in warnings]
        show([{"detector": folder.name, "level": level, "problem": text} for level, text in rows], output)
    else:
        show_warnings(warnings)
    if refused is not None:
        raise refused
    require_sound(folder)
    if output is not OutputFormat.JSON:
        echo(f"{folder.name}: no problems; next: `lozenge test {folder.name}`")


def _refused_by_code(folder: Path, settings: dict[str, Any]) -> list[str]:
    """What the detector's own code cannot say here of `settings`; raises why it refuses them, or cannot run."""
    from lozenge.detector.manifest import read
    from lozenge_deploy.releases.detector_process import try_settings
    from lozenge_deploy.releases.environments import environment_of
    from lozenge_deploy.releases.release import build

    if read(folder / "pyproject.toml")[2].realtime:
        build(folder)
    if not settings:
        return []
    unchecked = try_settings(folder.name, environment_of(folder), settings)
    return [f"detect() was not asked about the settings: {unchecked}"] if unchecked else []


def run_tests(
    name: NAME = ".",
    arguments: Annotated[list[str] | None, typer.Argument(help="More for pytest, after --.")] = None,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Run a detector's own tests on the code that runs it live, then their events under every fault.

    If all of them pass, `lozenge deploy` does not run them again for these files on this machine.
    """
    from lozenge_deploy.releases import test_report
    from lozenge_deploy.releases.environments import environment_of, in_environment
    from lozenge_deploy.releases.test_run import proof_of, test_command
    from lozenge_deploy.supervision.temp_dirs import temporary_folder

    folder = folder_of(name)
    _require_runnable(folder)
    if not (folder / f"test_{folder.name}.py").is_file():
        raise UsageError(f"testing {folder.name}: it has no test_{folder.name}.py", hint=f"`lozenge check {name}`")
    with tempfile.TemporaryDirectory() as reports, temporary_folder() as temporary:
        report = Path(reports) / "report.xml"
        python = environment_of(folder)
        proof = proof_of(folder, python)  # of the files as they are now
        command = test_command(python, report, Path(reports), *(arguments or []))
        stdout = sys.stderr if output is OutputFormat.JSON else sys.stdout
        run = subprocess.run(command, cwd=folder, env=in_environment(os.environ | temporary, python), stdout=stdout)
        found = test_report.read(report)
    if output is OutputFormat.JSON:
        show([asdict(outcome) for outcome in found], output)
    elif faults := [outcome for outcome in found if outcome.fault]:
        show([_under(fault) for fault in faults], output)
    if run.returncode:
        raise DetectorError(f"testing {folder.name}: its tests fail", hint="see their output above")
    if not arguments and not test_report.unproved(found):
        proof.touch()


def _require_runnable(folder: Path) -> None:
    """Raises ConfigError with what keeps the detector from running; shows what else a deploy would refuse."""
    from lozenge_deploy.releases.lint.folder import require_runnable

    found = require_runnable(folder)
    show_warnings([f"`lozenge deploy` will refuse {line}" for line in found.unfinished])
    show_warnings(found.warnings)


def _under(test: "ReportedTest") -> dict[str, Any]:
    """The result of one fault, in a row."""
    reason = test.reason.partition("\n")[0] or None
    seconds = round(test.seconds, 1)
    return {"fault": test.fault, "result": test.outcome, "seconds": seconds, "reason": reason}


def try_(
    name: NAME = ".",
    last: LAST = "1h",
    set_: SET = None,
    examples: EXAMPLES = 5,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Backtest: show which alerts it would have emitted for retained events, compared with the live release."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.releases.detector_process import backtest
    from lozenge_deploy.releases.environments import environment_of

    folder, settings = folder_of(name), settings_of(set_)
    seconds_of(last, "--last")
    _require_runnable(folder)
    outcome = backtest(folder.name, environment_of(folder), KafkaSettings.load(), last, settings)
    if output is OutputFormat.JSON:
        show([outcome], output)
    else:
        show_backtest(outcome, examples, output)


def dev(
    name: NAME = ".",
    last: Annotated[str, typer.Option(help='Start so far back, such as "10m".')] = "0s",
    dry_run: DRY_RUN = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Run the detector alongside the live release, restart it whenever its folder changes, and print its alerts."""
    from datetime import timedelta

    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.cli.author.dev import develop

    folder, back = folder_of(name), timedelta(seconds=seconds_of(last, "--last"))
    _require_runnable(folder)
    if dry_run and output is OutputFormat.JSON:
        show([{"detector": folder.name, "folder": str(folder), "last": last}], output)
    elif dry_run:
        echo(f"would run {folder} from {last} ago, with its own topics and group; Ctrl-C removes them")
    else:
        develop(folder, KafkaSettings.load(), back, as_json=output is OutputFormat.JSON)
