"""What a controller sees at the beginning of a tick, as values: its jobs, the clock, and the broker."""

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from lozenge.protocol.job_spec import JobSpec
from lozenge.protocol.job_status import HOST_GONE, JobPhase, JobStatus
from lozenge_deploy.supervision.job_process import StartRecord

JobId = tuple[int, float]
"""The pid of a job's leader, and when that was created."""
DEFAULT_TRIGGER = timedelta(minutes=1)
"""Of a release whose declaration is not at hand yet."""
SIGNALLED = 128
"""A shell adds it to the number of the signal that killed its child."""


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as it was seen.

    `exit_code` and `last_error` are those of a job that is not `alive`. `memory_mb` is None where it was not measured.
    `host_ended` says that it shared a Spark host that has ended, and `alone` that no other detector was there.
    """

    record: StartRecord
    alive: bool = True
    status: JobStatus | None = None
    spec: JobSpec | None = None
    exit_code: int | None = None
    last_error: str = ""
    kill_reason: str = ""
    stopping_seconds: float = 0.0
    memory_mb: int | None = None
    host_ended: bool = False
    alone: bool = False

    @property
    def id(self) -> JobId:
        """What distinguishes it from every other job of this machine."""
        return self.record.pid, self.record.created

    @property
    def is_live(self) -> bool:
        """Whether it has reported that it is live."""
        return self.status is not None and self.status.phase is JobPhase.LIVE

    @property
    def lost_host(self) -> bool:
        """Whether it ended because of its Spark host; a job may notice that host's end before the agent does."""
        return not self.alive and (self.host_ended or (bool(self.record.spark_host) and self.exit_code == HOST_GONE))

    @property
    def exit_reason(self) -> str:
        """How it ended. A job that was killed logs no error, and one that was stopped has none."""
        code, error, host = self.exit_code, self.last_error, self.record.spark_host
        if self.kill_reason:
            return self.kill_reason
        if code == 0:
            return "exited with code 0"
        if self.host_ended:
            return f"exited because its Spark host {host} has ended"
        if self.lost_host:
            return f"exited because it has lost its Spark host {host}: {error}"
        if code is None:
            return "was killed by a signal"
        return "was killed by signal 9" if code == SIGNALLED + signal.SIGKILL else f"exited with code {code}: {error}"

    @property
    def ended_in_order(self) -> bool:
        """Whether it ended because it was asked to, as by `lozenge down`: that is no crash."""
        return not self.alive and self.exit_code == 0 and not self.kill_reason

    @property
    def ordered_live(self) -> bool:
        """Whether its newest spec says that it should be live."""
        return self.spec is not None and not self.spec.standby

    @property
    def writes_unfenced(self) -> bool:
        """Whether Spark's sink may still write for it without a fence; the sink stops before the processes do."""
        status = self.status
        return status is not None and not status.fenced and status.finished_at < self.record.started_at

    def matches(self, process: Sequence[object]) -> bool:
        """Whether it was started as `process`; then it needs no restart to fulfil the spec."""
        return self.record.process == list(process)


@dataclass(frozen=True, slots=True)
class FailedStart:
    """A start that failed since the last tick, with its `error`; "" if the broker did not answer.

    It is the fault of its release unless `no_host` says that no Spark host has a place.
    """

    of_previous: bool
    replaces: bool
    error: str
    no_host: bool = False


@dataclass(frozen=True, slots=True)
class Observed:
    """One tick's view. `now` is in Unix seconds; the triggers are those of the spec and of the one before it."""

    now: float
    broker_stable_seconds: float
    jobs: Mapping[JobId, JobView] = field(default_factory=dict)
    prepared: bool = True
    previous_prepared: bool = True
    trigger: timedelta = DEFAULT_TRIGGER
    previous_trigger: timedelta = DEFAULT_TRIGGER
    failed_start: FailedStart | None = None
