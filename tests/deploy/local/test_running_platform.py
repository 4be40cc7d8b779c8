"""A command finds the platform that runs near to where it is called."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.local.running_platform import (
    BOOTSTRAP_VARIABLE,
    DEFAULT,
    STATE,
    environment_of,
    running,
    variables_near,
)
from tests.deploy.command import invoke
from tests.waiting import until

ADDRESS = "127.0.0.1:1"
"""Nothing listens there."""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A folder with a process that is called as a platform, and its state."""
    command = [sys.executable, "-c", "input()", "lozenge_deploy.local.platform"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        home = tmp_path / DEFAULT
        home.mkdir()
        (home / STATE).write_text(json.dumps({"pid": process.pid, "bootstrap": ADDRESS}))
        yield tmp_path
        process.kill()


def test_it_is_that_of_the_folder_or_of_one_above_unless_a_broker_is_named(project: Path) -> None:
    below = project / "detectors" / "one"
    below.mkdir(parents=True)
    for here in (project, below):
        assert variables_near(here, {}) == {"LOZENGE_KAFKA_BOOTSTRAP": ADDRESS}
    assert variables_near(project, {BOOTSTRAP_VARIABLE: "elsewhere:9092"}) == {}
    assert KafkaSettings.variable_names()["bootstrap"] == BOOTSTRAP_VARIABLE


def test_a_command_asks_that_platform(project: Path) -> None:
    run = invoke("history", "spotter", cwd=project)
    assert (run.returncode, ADDRESS in run.stderr) == (3, True)


@pytest.mark.parametrize("state", ["{", "[]", '{"pid": 0}'])
def test_one_that_does_not_run_is_none(state: str, tmp_path: Path) -> None:
    (tmp_path / DEFAULT).mkdir()
    (tmp_path / DEFAULT / STATE).write_text(state)
    assert running(tmp_path / DEFAULT) is None
    assert variables_near(tmp_path, {}) == {}


def test_the_variables_of_a_process_are_those_of_its_start() -> None:
    environment = {**os.environ, "LOZENGE_TRIED": "yes"}
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=environment) as process:
        until(lambda: (environment_of(process.pid) or {}).get("LOZENGE_TRIED") == "yes")
        process.kill()
    assert environment_of(2**22 + 1) is None
