"""The controller of one replica of a detector: it observes the replica's jobs, decides (`decide`), and acts."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from lozenge.detector.manifest import Manifest
from lozenge.errors import BrokerUnavailable, LozengeError, SparkGone
from lozenge_deploy.agent.actions import (
    Action,
    AppendEvent,
    GoLive,
    Isolate,
    Kill,
    RaisePriority,
    ReplicaState,
    RollBack,
    Send,
    Start,
    Terminate,
)
from lozenge_deploy.agent.decide import decide
from lozenge_deploy.agent.observation import DEFAULT_TRIGGER, FailedStart, JobId, JobView, Observed
from lozenge_deploy.agent.status_reporter import StatusReporter
from lozenge_deploy.agent.tick import TIMEOUTS, Timeouts
from lozenge_deploy.control.records import DeploymentSpec, Goal
from lozenge_deploy.supervision.job_process import JobProcess, StartRecord, newest_generation

MEMORY_SECONDS = 1.0
"""How often the memory of jobs is measured."""


class JobLauncher(Protocol):
    """Starts processes of a release and finds those of an earlier agent; see `Launcher`."""

    def found(self, folder: Path) -> list[JobProcess]: ...
    def prepared(self, spec: DeploymentSpec) -> bool: ...
    def declared(self, spec: DeploymentSpec) -> Manifest | None: ...
    def start(self, spec: DeploymentSpec, folder: Path, generation: int, *, standby: bool) -> JobProcess: ...
    def host_has_ended(self, record: StartRecord) -> bool: ...
    def was_alone(self, record: StartRecord) -> bool: ...
    def close(self) -> None: ...


class Controller:
    """The jobs of one replica on this machine, in the folders below `folder`.

    It reports through its `reporter`. `newest` returns the generation that committed last, `clock` the Unix seconds.
    """

    def __init__(
        self,
        folder: Path,
        launcher: JobLauncher,
        newest: Callable[[], int],
        reporter: StatusReporter,
        timeouts: Timeouts = TIMEOUTS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder, self._launcher, self._newest = folder, launcher, newest
        self._reporter, self._timeouts, self._clock = reporter, timeouts, clock
        self._jobs = {_id(job): job for job in launcher.found(folder)}
        self._state = ReplicaState(watch_started_at=clock())
        self._failed_start: FailedStart | None = None
        self._memory_measured_at = 0.0

    @property
    def state(self) -> ReplicaState:
        """The role of each job."""
        return self._state

    @property
    def live(self) -> JobProcess | None:
        """The job that is or should be live."""
        return self._jobs.get(self._state.live) if self._state.live is not None else None

    @property
    def successor(self) -> JobProcess | None:
        """The standby that is to replace it."""
        return self._jobs.get(self._state.successor) if self._state.successor is not None else None

    def running(self) -> list[JobProcess]:
        """Every job that has a process, live or not."""
        return [job for job in self._jobs.values() if job.alive()]

    def tick(self, spec: DeploymentSpec, broker_stable_seconds: float) -> None:
        """Takes the next step towards `spec`; the broker has been available for `broker_stable_seconds`.

        Raises BrokerUnavailable once everything else is done.
        """
        seen = self._observe(spec, broker_stable_seconds)
        decision = decide(spec, self._reporter.status, self._state, seen, self._timeouts)
        self._state, self._failed_start = decision.state, None
        self._reporter.report(decision.status)
        unavailable: BrokerUnavailable | None = None
        for action in decision.actions:
            try:
                self._execute(action, seen)
            except BrokerUnavailable as error:
                unavailable = error
        self._forget_ended(seen)
        if unavailable is not None:
            raise unavailable

    # observe

    def _observe(self, spec: DeploymentSpec, broker_stable_seconds: float) -> Observed:
        at = self._clock()
        measures = at - self._memory_measured_at >= MEMORY_SECONDS
        if measures:
            self._memory_measured_at = at
        previous = spec.before if spec.state == "rebuild" else None
        return Observed(
            now=at,
            broker_stable_seconds=broker_stable_seconds,
            jobs={id: self._view(job, measures=measures) for id, job in self._jobs.items()},
            prepared=spec.goal is Goal.RUNNING and self._launcher.prepared(spec),
            previous_prepared=previous is not None and self._launcher.prepared(previous),
            trigger=self._trigger(spec),
            previous_trigger=self._trigger(previous) if previous is not None else DEFAULT_TRIGGER,
            failed_start=self._failed_start,
        )

    def _view(self, job: JobProcess, *, measures: bool) -> JobView:
        view = _view(job, measures=measures and not job.stopping_seconds())
        view = replace(view, host_ended=not view.alive and self._launcher.host_has_ended(job.record))
        return replace(view, alone=self._launcher.was_alone(job.record)) if view.lost_host else view

    def _trigger(self, spec: DeploymentSpec) -> timedelta:
        if spec.trigger is not None:
            return spec.trigger
        declared = self._launcher.declared(spec)
        return declared.trigger if declared is not None else DEFAULT_TRIGGER

    # act

    def _execute(self, action: Action, seen: Observed) -> None:
        match action:
            case Start():
                self._start(action)
            case GoLive(id, spec):
                self._go_live(id, spec)
            case Send(id, job_spec):
                self._jobs[id].send(job_spec)
            case Terminate(id):
                self._jobs[id].terminate()
            case Kill(id, reason):
                self._jobs[id].kill_reason = reason or self._jobs[id].kill_reason
                self._jobs[id].kill()
            case RaisePriority(id):
                self._jobs[id].raise_priority()
            case AppendEvent(what, id, detail):
                self._reporter.record(what, seen.jobs[id] if id is not None else None, detail)
            case RollBack(spec, reason):
                self._reporter.roll_back(spec, reason)
            case Isolate(spec, reason):
                self._reporter.isolate(spec, reason)

    def _start(self, order: Start) -> None:
        try:
            generation = self._next_generation()
            folder = self._folder_for(order.spec, generation, order.standby)
            job = self._launcher.start(order.spec, folder, generation, standby=order.standby)
        except BrokerUnavailable:
            self._failed_start = FailedStart(order.of_previous, order.replaces, "")
            raise
        except (LozengeError, OSError) as error:
            no_host = isinstance(error, SparkGone)
            said = str(error) or type(error).__name__
            self._failed_start = FailedStart(order.of_previous, order.replaces, said, no_host)
            return
        self._jobs[_id(job)] = job
        self._state = self._state.with_started(_id(job), standby=order.standby)
        self._reporter.record("started as standby" if order.standby else "started", JobView(job.record))
        if order.phase is not None:
            started = {} if order.standby else {"pid": job.record.pid}
            self._reporter.report(self._reporter.status.model_copy(update={"phase": order.phase, **started}))

    def _go_live(self, id: JobId, spec: DeploymentSpec) -> None:
        try:
            self._jobs[id].send(spec.job_spec(self._next_generation(), standby=False))
        except BrokerUnavailable:
            self._state = self._state.with_cut_over_undone()
            raise

    def _next_generation(self) -> int:
        """A generation above all that ever committed, was reported, or was started here."""
        started_here = newest_generation(self._launcher.found(self._folder))
        return max(started_here, self._reporter.status.generation, self._newest()) + 1

    def _folder_for(self, spec: DeploymentSpec, generation: int, standby: bool) -> Path:
        """The folder of a new job. A restarted job keeps its folder, which has an aggregate's checkpoint."""
        if not standby:
            for job in self._launcher.found(self._folder):
                if job.matches(spec.process) and not job.alive():
                    return job.folder
        return self._folder / f"g{generation}"

    def _forget_ended(self, seen: Observed) -> None:
        """Forgets the jobs that have ended and have no role."""
        roles = {self._state.live, self._state.successor, *self._state.stopping}
        for id, job in seen.jobs.items():
            if id not in roles and not job.alive:
                del self._jobs[id]


def _id(job: JobProcess) -> JobId:
    return job.record.pid, job.record.created


def _view(job: JobProcess, *, measures: bool = False) -> JobView:
    alive = job.alive()
    return JobView(
        record=job.record,
        alive=alive,
        status=job.status(),
        spec=job.spec(),
        exit_code=None if alive else job.exit_code(),
        last_error="" if alive else job.last_error(),
        kill_reason=job.kill_reason,
        stopping_seconds=job.stopping_seconds(),
        memory_mb=job.memory_bytes() // 2**20 if alive and measures else None,
    )
