"""What fake jobs do, one step at a time: in processes of their own (`fake_job.py`) or as simulated ones.

It imports little, since each process imports it.
"""

import sys
from collections.abc import Iterator
from typing import Any, Protocol

from lozenge.protocol.job_status import JobPhase, JobStatus


class Job(Protocol):
    """The inside of a job: what it knows and what it reports."""

    stopped: bool
    """Whether it was requested to stop."""

    def now(self) -> float: ...
    def read_spec(self) -> dict[str, Any]: ...
    def reported(self) -> JobStatus: ...
    def report(self, **values: Any) -> None: ...
    def has(self, name: str) -> bool:
        """Whether the test has made this file."""
        ...


def steps(behaviour: str, job: Job) -> Iterator[None]:
    """Reads its spec, reports like `lozenge.job`, and fails as its behaviour says: SystemExit ends it."""
    if behaviour == "crash at start":
        sys.exit("it cannot start")
    if behaviour == "no broker":
        sys.exit(3)
    spec = job.read_spec()
    job.report(
        phase=JobPhase.STARTING,
        revision=spec["revision"],
        digest="digest",
        generation=spec["generation"],
        last_progress_at=job.now(),
    )
    yield
    if spec["standby"]:
        job.report(phase=JobPhase.STANDBY)
        if behaviour == "crash as standby":
            sys.exit("it cannot run as standby")
        if not behaviour.startswith(("never ready", "ready on signal")):
            job.report(phase=JobPhase.READY)
    else:
        _go_live(job, spec)
    if behaviour == "realtime":
        job.report(fenced=False)
    ballast = bytearray(150 * 2**20) if behaviour == "eats memory" else b""
    while behaviour == "deaf" or not job.stopped:
        yield
        spec = _obey(behaviour, job, spec)
        _work(behaviour, job, spec)
    del ballast
    if behaviour == "realtime":
        while not job.has("quiet"):  # it publishes the rest
            yield
        job.report(finished_at=job.now())
        while not job.has("gone"):  # its JVM cleans up
            yield


def _go_live(job: Job, spec: dict[str, Any]) -> None:
    at = job.now()
    job.report(
        phase=JobPhase.LIVE,
        revision=spec["revision"],
        generation=spec["generation"],
        since={0: 7},
        offsets={0: 7},
        last_commit_at=at,
        last_progress_at=at,
    )


def _obey(behaviour: str, job: Job, spec: dict[str, Any]) -> dict[str, Any]:
    """Follows the newest spec; returns the one that it follows now."""
    new = job.read_spec()
    if new == spec or (behaviour == "never live" and not new["standby"]):
        return spec
    if behaviour == "crash at cut-over" and not new["standby"]:
        sys.exit("it cannot go live")
    if "bad" in new["settings"]:
        job.report(rejected="bad: no such setting", revision=new["revision"])
    elif spec["standby"] and not new["standby"]:
        _go_live(job, new)
    else:
        job.report(rejected="", revision=new["revision"], digest=str(new["settings"]))
    return new


def _work(behaviour: str, job: Job, spec: dict[str, Any]) -> None:
    """Reports a batch, or what has gone wrong in it."""
    status = job.reported()
    is_live = status.phase is JobPhase.LIVE
    if behaviour == "ready on signal" and status.phase is JobPhase.STANDBY and job.has("ready"):
        job.report(phase=JobPhase.READY)
    if behaviour == "crash when limited" and "limit" in spec["settings"]:
        sys.exit("it cannot run so")
    if behaviour == "crash when live" and is_live:
        sys.exit("it cannot live")
    if behaviour == "circuit open":
        job.report(circuit_open="" if job.has("fixed") else "it raises on 10 of 10 records")
    if behaviour == "dead letters":
        job.report(records=status.records + 1, dead_letters=status.dead_letters + 1, last_progress_at=job.now())
    elif behaviour == ("hangs" if is_live else "never ready and hangs"):
        job.report(last_progress_at=1.0)
    elif job.now() - status.last_progress_at > 1:
        job.report(last_progress_at=job.now())
