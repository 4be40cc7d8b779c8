"""Runs a detector's own code: its tests, its description, a backtest, a backfill, a replay of dead letters.

Each is a process in the detector's environment. Only `backfill` and `replay` write to topics.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lozenge.contracts.record import format_positions
from lozenge.errors import BrokerUnavailable, ConfigError, DetectorError, LozengeError
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.dlq_resolutions import DeadLetterSelection
from lozenge_deploy.releases import test_report
from lozenge_deploy.releases.environments import in_environment
from lozenge_deploy.supervision.child import Child
from lozenge_deploy.supervision.temp_dirs import temporary_folder

STEP_SECONDS = 5.0
_OWN_SETTINGS = ("--rootdir=.", "--config-file=pyproject.toml")
_KINDS: Mapping[int, type[LozengeError]] = {2: ConfigError, 3: BrokerUnavailable}


def test_command(python: Path, report: Path, run_in: Path) -> list[str]:
    """Runs the tests of the current folder in the detector's `python`; `test_report.read` reads the report.

    It also runs those of `lozenge.testing.invariants`. The tests' code has `run_in` as its current folder, as a job has
    another one than its source. Settings of pytest are the folder's own. The environment of the command adds pytest
    alone: a package that both have is the detector's.
    """
    tools = [path for path in sys.path if path.endswith("site-packages")]
    plugins = ["-p", "no:cacheprovider", "-p", "no:randomly", "-p", "lozenge.testing.plugin"]
    names = ["--import-mode=importlib", "-o", "consider_namespace_packages=true"]
    options = ["-q", *names, *plugins, f"--run-in={run_in}", f"--junit-xml={report}", *_OWN_SETTINGS, "."]
    code = f"import sys; sys.path += {tools}; import pytest; sys.exit(pytest.main({options} + sys.argv[1:]))"
    return [str(python), "-c", code]


@contextmanager
def tests_of(folder: Path, python: Path) -> Iterator[Callable[[], None]]:
    """Runs the tests in `folder` concurrently with the block; they end with it.

    It yields a function that waits for them. That raises DetectorError, with their output on stderr, if they fail, or
    if no `test_fires` or no `test_stays_silent` has passed.
    """
    with (
        tempfile.TemporaryFile("w+") as output,
        tempfile.TemporaryDirectory() as report_folder,
        temporary_folder() as temporary,
    ):
        report = Path(report_folder) / "report.xml"
        print(f"testing detector {folder.name}", file=sys.stderr)
        process = Child(
            test_command(python, report, python.parents[1]),
            environment=in_environment(os.environ | temporary),
            folder=folder,
            stdout=output,
            stderr=output,
        )

        def passed() -> None:
            if process.wait():
                output.seek(0)
                sys.stderr.write(output.read())
                hint = f"fix them: `lozenge test {folder.name}`"
                raise DetectorError(f"testing {folder.name}: its tests fail", hint=hint)
            if owed := test_report.unproved(test_report.read(report)):
                what = " and ".join(f"{kind}..." for kind in owed)
                raise DetectorError(
                    f"testing {folder.name}: no test {what} has passed",
                    hint=f"a skipped test shows nothing; see `lozenge test {folder.name} -- -rs`",
                )

        try:
            yield passed
        finally:
            process.end()


def description(name: str, python: Path) -> str:
    """A `lozenge.detector.description.Description` as JSON; raises ConfigError or DetectorError with its message."""
    return _output(python, ["lozenge.job.tools.describe", name], {}, f"describing {name}: ")


def try_settings(name: str, python: Path, overrides: Mapping[str, Any]) -> None:
    """Raises ConfigError with every problem of the overrides, as the detector's own code reports it."""
    if overrides:
        _output(python, ["lozenge.job.tools.describe", name, "--settings", json.dumps(overrides)], {})


def backtest(name: str, python: Path, kafka: KafkaSettings, last: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Runs it over the events of `last`: a `lozenge.job.tools.backtest.BacktestResult`, as JSON.

    Raises ConfigError, BrokerUnavailable or DetectorError with its message.
    """
    variables = {"LOZENGE_JOB_SETTINGS": json.dumps(overrides), **kafka.variables}
    outcome: dict[str, Any] = json.loads(
        _output(python, ["lozenge.job.tools.backtest", name, "--last", last], variables)
    )
    return outcome


def backfill(
    name: str, python: Path, kafka: KafkaSettings, release: str, overrides: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Processes the gaps in its coverage. Yields each step: a `lozenge.job.tools.backfill.BackfillStep`, as JSON.

    It ends when the iterator is closed. Raises as `backtest` does.
    """
    yield from _objects(python, ["lozenge.job.tools.backfill", name], _job_settings(kafka, release, overrides))


def replay(
    name: str,
    python: Path,
    kafka: KafkaSettings,
    release: str,
    overrides: Mapping[str, Any],
    choice: DeadLetterSelection,
    *,
    in_order: bool,
    message: str,
) -> Iterator[dict[str, Any]]:
    """Replays dead letters. Yields each step: a `lozenge.job.tools.dlq_replay.ReplayStep`, as JSON.

    It ends when the iterator is closed. Raises as `backtest` does.
    """
    options = [f"--positions={format_positions(choice.positions)}", f"--message={message}"]
    options += [f"--key={choice.key}"] if choice.key is not None else []
    options += ["--in-order"] if in_order else []
    yield from _objects(
        python, ["lozenge.job.tools.dlq_replay", name, *options], _job_settings(kafka, release, overrides)
    )


def _job_settings(kafka: KafkaSettings, release: str, overrides: Mapping[str, Any]) -> dict[str, str]:
    return {
        "LOZENGE_JOB_SETTINGS": json.dumps(overrides),
        "LOZENGE_JOB_RELEASE": release,
        **kafka.variables,
    }


def _objects(python: Path, module: list[str], variables: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Every JSON object that it prints, when it does."""
    with temporary_folder() as temporary, tempfile.TemporaryFile("w+") as output:
        process = Child(
            [str(python), "-m", *module],
            environment=in_environment(os.environ | variables | temporary),
            folder=python.parents[1],  # or Python would import modules of the current folder
            stdout=subprocess.PIPE,
            stderr=output,
        )
        try:
            for line in process.stdout:
                yield json.loads(line)
            if code := process.wait():
                output.seek(0)
                raise _error(code, output.read())
        finally:
            process.terminate()  # between two steps: an open transaction would block read_committed consumers of alerts
            process.end(STEP_SECONDS)


def _output(python: Path, module: list[str], variables: Mapping[str, str], doing: str = "") -> str:
    folder = python.parents[1]  # or Python would import what lies in the present folder
    with temporary_folder() as temporary:
        environment = in_environment(os.environ | variables | temporary)
        run = subprocess.run([str(python), "-m", *module], env=environment, cwd=folder, capture_output=True, text=True)
    if run.returncode:
        raise _error(run.returncode, run.stderr, doing)
    return run.stdout


def _error(code: int, output: str, doing: str = "") -> LozengeError:
    message, _, hint = output.strip().partition("\n  -> ")
    return _KINDS.get(code, DetectorError)(f"{doing}{message}", hint=hint)
