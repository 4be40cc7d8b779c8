"""Brings a scripted job into a state, and lets something happen to it."""

from pathlib import Path
from typing import Any

from lozenge.errors import Flood
from lozenge.job.drivers.driver import AlertsDrafted, QueryFailed
from lozenge.job.lifecycle.circuit_breaker import RETRY_INTERVAL_SECONDS
from lozenge.job.lifecycle.job_state import JobEvent, JobState
from tests.shared.job.lifecycle.scripted import ScriptedJob, alert

S, E = JobState, JobEvent
FLOOD = Flood("too many records fail", hint="fix the detector")


def state_of(job: ScriptedJob) -> JobState:
    """A call, so that a type checker expects that it changes."""
    return job.state


def live(folder: Path, **more: Any) -> ScriptedJob:
    return ScriptedJob(folder, **more).begin()


def standby(folder: Path, **more: Any) -> ScriptedJob:
    return ScriptedJob(folder, standby=True, **more).begin()


def ready(folder: Path, **more: Any) -> ScriptedJob:
    job = standby(folder, **more)
    job.driver.warm = True
    job.advance()
    return job


def cutting_over(folder: Path, **more: Any) -> ScriptedJob:
    """With a batch under way."""
    job = ready(folder, **more)
    job.plan_batch(0, 10, 10)
    job.write_spec(generation=2)
    job.advance()
    return job


def replanning(folder: Path, **more: Any) -> ScriptedJob:
    job = live(folder, **more)
    job.driver.at_boundary = False
    job.write_spec(settings={"limit": 5})
    job.advance()
    return job


def stopping(folder: Path, **more: Any) -> ScriptedJob:
    job = live(folder, **more)
    job.driver.at_boundary = False
    job.stop()
    job.advance()
    return job


def paused(folder: Path, **more: Any) -> ScriptedJob:
    job = live(folder, **more)
    job.recovery.raises = FLOOD
    fail(job)
    job.recovery.raises = None
    return job


def waiting(folder: Path, **more: Any) -> ScriptedJob:
    return ScriptedJob(folder, standby_driver=False, standby=True, **more).begin()


def unassigned(folder: Path, **more: Any) -> ScriptedJob:
    return ScriptedJob(folder, shared=True, **more).begin()


def shared(folder: Path, **more: Any) -> ScriptedJob:
    job = unassigned(folder, **more)
    job.assignment.partitions = frozenset({1})
    job.advance()
    return job


def paused_instance(folder: Path) -> ScriptedJob:
    job = shared(folder)
    flood(job)
    job.recovery.raises = None
    return job


def fail(job: ScriptedJob, error: Exception | None = None) -> None:
    assert job.current.run is not None
    ends = dict.fromkeys(job.current.run.read, 10)
    job.driver.events.append(QueryFailed(error or ValueError("broken"), 0, ends))
    job.advance()


def flood(job: ScriptedJob) -> None:
    job.recovery.raises = FLOOD
    fail(job)


def stop(job: ScriptedJob) -> None:
    job.stop()
    job.advance()


def plan(job: ScriptedJob) -> None:
    job.plan_batch(0, 10, 10)


def end(job: ScriptedJob) -> None:
    job.end_batch(0, 10, 10)


def draft(job: ScriptedJob) -> None:
    job.driver.events.append(AlertsDrafted([alert(0, 1)]))
    job.advance()


def new_spec(job: ScriptedJob) -> None:
    spec = job.parts.specs.spec
    job.write_spec(**(spec.model_dump() | {"revision": "next"}))
    job.advance()


def new_settings(job: ScriptedJob) -> None:
    spec = job.parts.specs.spec
    job.write_spec(**(spec.model_dump() | {"settings": {"limit": 7}}))
    job.advance()


def made_live(job: ScriptedJob) -> None:
    job.write_spec(generation=2)
    job.advance()


def assign(job: ScriptedJob) -> None:
    job.assignment.partitions = frozenset({0})
    job.advance()


def boundary(job: ScriptedJob) -> None:
    job.driver.at_boundary = True
    job.advance()


def warm(job: ScriptedJob) -> None:
    job.driver.warm = True
    job.advance()


def begin(job: ScriptedJob) -> None:
    job.begin()


def retry(job: ScriptedJob) -> None:
    job._watch._entered -= RETRY_INTERVAL_SECONDS
    job.advance()


def nothing(job: ScriptedJob) -> None:
    """It has happened on the way."""


def starting(folder: Path) -> ScriptedJob:
    return ScriptedJob(folder)
