"""A start that cannot be is refused before a JVM starts; the exit code and the log say who has to act."""

import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from lozenge.errors import BrokerUnavailable, Fenced, LozengeError, SparkGone, StaleGeneration
from lozenge.job import service
from lozenge.process import logging
from lozenge.protocol.job_status import HOST_GONE
from tests.shared.detector_folder import MODULE, PROJECT, write_detector

REALTIME = PROJECT + 'mode = "realtime"\n'


@pytest.fixture(autouse=True)
def _process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Logging keeps its configuration, and no JVM starts."""
    monkeypatch.setattr(logging, "configure", lambda *app, **context: None)
    monkeypatch.setattr(service, "partitions", lambda kafka: {})
    monkeypatch.setenv("LOZENGE_JOB_WORK", str(tmp_path / "work"))


def started(monkeypatch: pytest.MonkeyPatch, folder: Path) -> tuple[int, list[dict[str, object]]]:
    """The exit code of a job of this folder, and the lines of its log."""
    monkeypatch.setattr(sys, "argv", ["lozenge.job", str(folder)])
    with capture_logs() as said:
        code = service.main()
    return code, [dict(line) for line in said]


@pytest.mark.parametrize(
    ("error", "code", "level"),
    [
        (BrokerUnavailable("no Kafka broker answers", hint="start it"), 3, "error"),
        (LozengeError("it failed", hint="restart it"), 1, "error"),
        (Fenced("a newer job has claimed", hint="nothing to do"), Fenced.exit_code, "info"),
        (StaleGeneration("a newer generation has committed", hint="nothing"), StaleGeneration.exit_code, "info"),
    ],
)
def test_an_error_ends_a_job_with_one_line_and_a_replaced_one_is_no_error(
    error: LozengeError, code: int, level: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(kafka: object) -> None:
        raise error

    monkeypatch.setattr(service, "partitions", fail)
    ended, said = started(monkeypatch, write_detector(tmp_path, "one"))
    assert ended == code
    assert said == [{"event": error.message, "hint": error.hint, "kind": type(error).__name__, "log_level": level}]


@pytest.mark.parametrize(("host", "code"), [(True, HOST_GONE), (False, 1)])
def test_the_end_of_a_shared_jvm_has_an_exit_code_of_its_own(
    host: bool, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(kafka: object) -> None:
        raise SparkGone("running one: Spark's JVM has ended")

    monkeypatch.setattr(service, "partitions", fail)
    if host:
        monkeypatch.setenv("LOZENGE_JOB_HOST", str(tmp_path))
    assert started(monkeypatch, write_detector(tmp_path, "one"))[0] == code


def test_what_nobody_expects_is_logged_with_its_stack(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(kafka: object) -> None:
        raise RuntimeError("what is this?")

    monkeypatch.setattr(service, "partitions", fail)
    code, [line] = started(monkeypatch, write_detector(tmp_path, "one"))
    assert code == 1
    assert (line["log_level"], line["exc_info"]) == ("critical", True)
    assert line["event"] == "the job failed: RuntimeError: what is this?"


def test_every_wrong_variable_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOZENGE_JOB_CORES", "none")
    monkeypatch.setenv("LOZENGE_PARTITIONS", "0")
    code, [line] = started(monkeypatch, write_detector(tmp_path, "one"))
    assert code == 2
    assert "LOZENGE_JOB_CORES" in str(line["event"])
    assert "LOZENGE_PARTITIONS" in str(line["event"])


def test_settings_are_checked_before_the_broker_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(service, "partitions", lambda kafka: pytest.fail("the broker was asked"))
    monkeypatch.setenv("LOZENGE_JOB_SETTINGS", '{"limit": 5}')
    code, [line] = started(monkeypatch, write_detector(tmp_path, "one"))
    assert code == 2
    assert "limit: there is no such setting" in str(line["event"])


@pytest.mark.parametrize(
    ("project", "variable", "value", "why"),
    [
        (REALTIME, "HOST", "/hosts/h1", "its tasks would keep the cores of others"),
        (PROJECT, "HOST", "/hosts/h1", "no host runs there"),
        (REALTIME, "MASTER", "spark://host:7077", "a job in Real-Time Mode runs in its own process"),
    ],
)
def test_a_job_does_not_start_where_it_cannot_run(
    project: str, variable: str, value: str, why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(f"LOZENGE_JOB_{variable}", value)
    code, [line] = started(monkeypatch, write_detector(tmp_path, "one", project=project))
    assert code in (1, 2, HOST_GONE)
    assert why in str(line["event"])
    assert line["hint"], "it says what to do"


def test_a_host_runs_no_job_that_has_a_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOZENGE_JOB_HOST", "/hosts/h1")
    monkeypatch.setenv("LOZENGE_JOB_MASTER", "spark://host:7077")
    code, [line] = started(monkeypatch, write_detector(tmp_path, "one"))
    assert code == 2
    assert "its tasks would keep the cores of others" in str(line["event"])


def test_a_detector_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    code, [line] = started(monkeypatch, tmp_path / "nothing")
    assert code in (1, 2)
    assert "nothing" in str(line["event"])


def test_a_module_that_raises_ends_its_job_with_its_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = write_detector(tmp_path, "one", module=MODULE + "\nraise OSError('no such model')\n")
    code, [line] = started(monkeypatch, folder)
    assert code in (1, 2)
    assert "no such model" in str(line["event"])
