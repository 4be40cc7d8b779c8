"""What becomes of the folder of a Spark host, whose log nobody takes or somebody does."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.agent.job_logs import JobLogs

NOBODY = KafkaSettings(bootstrap="127.0.0.1:9")


@pytest.fixture
def logs() -> Iterator[JobLogs]:
    found = JobLogs(NOBODY, 0.0)
    yield found
    found.close()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    found = tmp_path / "h1" / "host.log"
    found.parent.mkdir()
    found.write_text("")
    return found


def ship(logs: JobLogs, log: Path, *, ended: bool) -> None:
    for _ in range(3):
        logs.ship_hosts({log: ended} if log.parent.exists() else {})
        logs.ship([])


def test_the_folder_of_a_running_host_stays(logs: JobLogs, log: Path) -> None:
    ship(logs, log, ended=False)
    assert log.exists()


def test_the_folder_of_a_host_that_ended_goes_once_its_log_is_shipped(logs: JobLogs, log: Path) -> None:
    ship(logs, log, ended=False)
    ship(logs, log, ended=True)
    assert not log.parent.exists()


def test_a_host_that_ended_without_an_agent_is_no_different(logs: JobLogs, log: Path) -> None:
    log.unlink()  # it could not be started
    ship(logs, log, ended=True)
    assert not log.parent.exists()


def test_the_last_lines_of_a_host_wait_for_a_broker(logs: JobLogs, log: Path) -> None:
    log.write_text("the last words")
    ship(logs, log, ended=True)
    assert log.read_text() == "the last words"
