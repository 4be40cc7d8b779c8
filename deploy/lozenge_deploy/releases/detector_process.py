"""Runs a detector's own code: its description, a backtest, a backfill, a replay of dead letters.

Each is a process in the detector's environment. Only `backfill` and `replay` write to topics.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from lozenge.contracts.record import format_positions
from lozenge.errors import BrokerUnavailable, ConfigError, DetectorError, LozengeError
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.dlq_resolutions import DeadLetterSelection
from lozenge_deploy.releases.environments import in_environment
from lozenge_deploy.supervision.child import Child
from lozenge_deploy.supervision.temp_dirs import temporary_folder

STEP_SECONDS = 5.0
DESCRIBE_SECONDS = 300.0
"""The time that a description may take; a fold's takes some seconds, since it starts Spark."""
_KINDS: Mapping[int, type[LozengeError]] = {2: ConfigError, 3: BrokerUnavailable}


def description(name: str, python: Path) -> str:
    """A `lozenge.detector.description.Description` as JSON; raises ConfigError or DetectorError with its message."""
    return _output(python, ["lozenge.job.tools.describe", name], {}, f"describing {name}: ", DESCRIBE_SECONDS)


def try_settings(name: str, python: Path, overrides: Mapping[str, Any]) -> str:
    """Tries the overrides as the running job does: by the detector's declaration, then by its `detect()`.

    Returns why `detect()` could not be asked here, or "". Raises ConfigError with every problem of the declaration,
    DetectorError with the words of the job.
    """
    if not overrides:
        return ""
    command = ["lozenge.job.tools.describe", name, "--settings", json.dumps(overrides)]
    tried: dict[str, Any] = json.loads(_output(python, command, {}, limit=DESCRIBE_SECONDS))
    return str(tried["unplanned"])


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
    with temporary_folder() as temporary, tempfile.TemporaryFile("w+", errors="replace") as output:
        process = _started(python, module, {**variables, **temporary}, subprocess.PIPE, output)
        try:
            for line in process.stdout:
                yield json.loads(line)
            if code := process.wait():
                output.seek(0)
                raise _error(code, output.read())
        finally:
            process.terminate()  # between two steps: an open transaction would block read_committed consumers of alerts
            process.end(STEP_SECONDS)


def _output(
    python: Path, module: list[str], variables: Mapping[str, str], doing: str = "", limit: float | None = None
) -> str:
    with (
        temporary_folder() as temporary,
        tempfile.TemporaryFile("w+", errors="replace") as output,
        tempfile.TemporaryFile("w+", errors="replace") as errors,
    ):
        process = _started(python, module, {**variables, **temporary}, output, errors)
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired as error:
            raise DetectorError(
                f"{doing}its module has not been imported within {limit:g} s",
                hint="it must not wait for anything when it is imported; what it waits for belongs into detect()",
            ) from error
        finally:
            process.end()
        said = errors if code else output
        said.seek(0)
        if code:
            raise _error(code, said.read(), doing)
        return said.read()


def _started(
    python: Path, module: list[str], variables: Mapping[str, str], stdout: int | IO[str], stderr: IO[str]
) -> Child:
    return Child(
        [str(python), "-m", *module],
        environment=in_environment(os.environ | variables, python),
        folder=python.parents[1],  # or Python would import modules of the current folder
        stdout=stdout,
        stderr=stderr,
    )


def _error(code: int, output: str, doing: str = "") -> LozengeError:
    message, _, hint = output.strip().partition("\n  -> ")
    return _KINDS.get(code, DetectorError)(f"{doing}{message}", hint=hint)
