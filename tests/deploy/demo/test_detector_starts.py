"""The detectors of a demo start one after the other: each waits for its environment and for the previous one."""

import time
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lozenge.host.log_attribution import APP as SPARK_HOST
from lozenge.streams.merged import merged
from lozenge_deploy.demo.detector_starts import PATIENCE_SECONDS, START_SECONDS, DetectorStarts, is_starting
from lozenge_deploy.demo.milestones import FIRST_NOTIFICATION, Milestones
from lozenge_deploy.supervision.restart_policy import ProgramState
from lozenge_deploy.supervision.supervisor import SupervisedProcess
from tests.deploy.demo.test_view import READING
from tests.streams import AUTH, STREAMS

PAYMENTS, LOGINS = AUTH, STREAMS.get("login")
BOTH = merged([LOGINS, PAYMENTS], "account")


def process(age: float = 0.0, state: ProgramState = ProgramState.RUNNING) -> SupervisedProcess:
    return cast(SupervisedProcess, SimpleNamespace(state=state, pid=1, started_at=time.monotonic() - age))


class Run:
    """Three detectors on processes that the test controls; Python is installed for all of them.

    Payments are normalised already; the third detector reads logins too.
    """

    def __init__(self, *, since: float = 0.0, host_ready: bool = True) -> None:
        self.host_ready = host_ready
        self.children: dict[str, SupervisedProcess] = {}
        self.readings: dict[str, Any] = {}
        self.milestones = Milestones(time.monotonic() - since)
        self.pythons: dict[str, Future[Path]] = {name: Future() for name in ("one", "two", "three")}
        for python in self.pythons.values():
            python.set_result(Path("python"))
        programs: Any = SimpleNamespace(
            detector=lambda detector, python, nice: detector.name,
            spark_host=lambda python: SPARK_HOST,
            host_is_ready=lambda pid: self.host_ready,
        )
        supervisor: Any = SimpleNamespace(children=self.children, start=self._start)
        meter: Any = SimpleNamespace(reading=self.readings.get)
        detectors: Any = [SimpleNamespace(name=name, stream=PAYMENTS) for name in self.pythons]
        detectors[-1].stream = BOTH
        self.children[PAYMENTS.app] = process()
        self.readings[PAYMENTS.app] = replace(READING, at=time.time() + 1)
        normaliser: Any = lambda stream: stream.app  # noqa: E731
        self.starts = DetectorStarts(detectors, self.pythons, programs, normaliser, supervisor, meter, self.milestones)
        self.starts.start_next()

    def _start(self, name: str) -> None:
        self.children[name] = process()

    def reports(self, name: str) -> None:
        self.readings[name] = replace(READING, at=time.time() + 1)
        self.milestones.reported(name, self.readings[name])

    def started(self) -> list[str]:
        """The detectors that run after a look at what is due, and the normaliser of logins."""
        self.starts.start_next()
        return [name for name in self.children if name not in (SPARK_HOST, PAYMENTS.app)]


def test_each_detector_waits_for_the_previous_one() -> None:
    run = Run()
    assert run.started() == ["one"]
    run.reports("one")
    assert run.started() == ["one", "two"]
    assert run.started() == ["one", "two"]
    assert not run.starts.complete
    run.reports("two")
    assert run.started() == ["one", "two", LOGINS.app]
    assert run.started() == ["one", "two", LOGINS.app], "it reads what that writes"
    run.reports(LOGINS.app)
    assert run.started() == ["one", "two", LOGINS.app, "three"]
    assert run.starts.complete


def test_the_first_detector_waits_for_the_spark_host() -> None:
    run = Run(host_ready=False)
    assert not run.started()
    assert list(run.children) == [PAYMENTS.app, SPARK_HOST]
    run.host_ready = True
    assert run.started() == ["one"]


def test_a_spark_host_that_has_ended_delays_the_next_detector() -> None:
    run = Run()
    run.host_ready = False
    run.reports("one")
    assert run.started() == ["one"]
    run.host_ready = True
    assert run.started() == ["one", "two"]


def test_the_spark_host_waits_for_an_environment() -> None:
    run = Run(host_ready=False)
    del run.children[SPARK_HOST]
    run.pythons["one"] = Future()
    assert not run.started()
    assert SPARK_HOST not in run.children


def test_a_detector_waits_for_its_environment() -> None:
    run = Run()
    run.pythons["two"] = Future()
    run.reports("one")
    assert run.started() == ["one"]
    run.pythons["two"].set_result(Path("python"))
    assert run.started() == ["one", "two"]


def test_no_detector_waits_for_ever() -> None:
    run = Run(since=PATIENCE_SECONDS)
    run.children["one"] = process(age=START_SECONDS)
    assert run.started() == ["one", "two"]
    run.children["two"] = process(age=START_SECONDS)
    assert run.started() == ["one", "two", LOGINS.app]
    run.children[LOGINS.app] = process(age=START_SECONDS)
    assert run.started() == ["one", "two", LOGINS.app, "three"]


@pytest.mark.parametrize("done", ["failed", "notified"])
def test_a_first_detector_that_failed_or_has_notified_delays_no_other(done: str) -> None:
    run = Run()
    if done == "failed":
        run.children["one"] = process(state=ProgramState.FAILED)
    else:
        run.children["one"] = process(age=START_SECONDS)
        run.milestones.reached(FIRST_NOTIFICATION)
    assert run.started() == ["one", "two"]


def test_an_app_is_starting_until_it_reports() -> None:
    assert is_starting(process(), None)
    assert is_starting(process(age=5), replace(READING, at=time.time() - 6)), "the figures of an earlier start"
    assert not is_starting(process(age=5), replace(READING, at=time.time() - 4))
    assert not is_starting(process(state=ProgramState.WAITING), None)
