"""The controller of one replica of a detector: it keeps one live job, and a standby that is to replace it."""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from lozenge.protocol.job_status import JobStatus
from lozenge.protocol.job_status import Phase as JobPhase
from lozenge_deploy.agent.health import stuck
from lozenge_deploy.agent.restart_policy import JobLauncher, RestartPolicy
from lozenge_deploy.agent.status_reporter import StatusReporter
from lozenge_deploy.control.records import DeploymentSpec, Goal, Outcome, Phase, format_offsets, now
from lozenge_deploy.supervision.job_process import JobProcess, job_processes

SIGNALLED = 128
"""A shell adds it to the number of the signal that killed its child."""


@dataclass(frozen=True)
class Timeouts:
    """How long a controller waits, in seconds.

    - `start`: until a new job is ready; a job that rebuilds its state may take longer.
    - `cut_over`: until a standby that should go live is live.
    - `stop`: until a job that should stop is killed.
    - `hung`: until a job outside its watch window is killed, if its batch does not end.
    - `broker_stable`: until a job counts as unhealthy after the broker was unavailable, or after its adoption.
    """

    start: float = 300.0
    cut_over: float = 60.0
    stop: float = 30.0
    hung: float = 120.0
    broker_stable: float = 45.0


TIMEOUTS = Timeouts()


class Controller:
    """The jobs of one replica on this machine, in the folders below `folder`.

    It reports through its `reporter`. `newest` returns the generation that committed last.
    """

    def __init__(
        self,
        folder: Path,
        launcher: JobLauncher,
        newest: Callable[[], int],
        reporter: StatusReporter,
        timeouts: Timeouts = TIMEOUTS,
    ) -> None:
        self._folder, self._launcher, self._reporter, self._timeouts = folder, launcher, reporter, timeouts
        self._restarts = RestartPolicy(folder, launcher, newest, reporter)
        # exits of the previous release during a rebuild do not count against the new one
        self._previous_restarts = RestartPolicy(folder, launcher, newest, reporter)
        self.live: JobProcess | None = None
        self.successor: JobProcess | None = None
        self._stopping: list[JobProcess] = []
        self._cut_over_at: float | None = None
        self._watch_started_at = time.time()
        self._memory_checked_at = 0.0
        self._adopted_at = 0.0
        self._broker_stable_seconds = 0.0
        self._adopt()

    def running(self) -> list[JobProcess]:
        """Every job that has a process, live or not."""
        return [i for i in (self.live, self.successor, *self._stopping) if i is not None and i.alive()]

    def tick(self, spec: DeploymentSpec, broker_stable_seconds: float) -> None:
        """Takes the next step towards `spec`; the broker has been available for `broker_stable_seconds`."""
        self._broker_stable_seconds = min(broker_stable_seconds, time.time() - self._adopted_at)
        if spec.revision != self._reporter.status.revision:
            self._start_revision(spec)
        self._kill_overdue()
        if spec.goal is not Goal.RUNNING:
            self._stop_all(spec)
            return
        self._reap(spec)
        self._enforce_memory_limit()
        if self.live is not None and self.live.matches(spec.process):
            self._stop_successor()
        if self.live is not None and self.live.matches(spec.process):
            status = self.live.status()
            self._update_live(spec, status)
            self._check_health(spec, status)
        elif self.live is not None or self.successor is not None or self._needs_standby(spec):
            self._replace(spec)
        else:
            self._start_live(spec)

    @property
    def _broker_stable(self) -> bool:
        return self._broker_stable_seconds >= self._timeouts.broker_stable

    # adoption

    def _adopt(self) -> None:
        """Adopts the processes that an earlier agent left running; the next tick reaps one that has ended."""
        found = job_processes(self._folder)
        running = [i for i in found if i.alive()]
        live = [i for i in running if _is_live(i)]
        cutting_over = [i for i in running if i not in live and _has_cut_over_spec(i)]
        standbys = [i for i in running if i not in live and i not in cutting_over]
        live.sort(key=_live_generation)  # one that has just been replaced may still report that it is live
        if live and cutting_over:
            self.successor, self._cut_over_at = cutting_over.pop(0), time.time()
        elif standbys:
            self.successor = standbys.pop(0)
        if live:
            self.live = live.pop()
        elif cutting_over:
            self.live = cutting_over.pop(0)
        for job in (*live, *cutting_over, *standbys):
            self._stop(job)
        if (adopted := self.live or self.successor) is not None:
            self._adopted_at = time.time()
            self._reporter.record("adopted", adopted)
        elif found and self._reporter.status.pid is not None:
            self._adopted_at, self.live = time.time(), found[0]

    def _start_revision(self, spec: DeploymentSpec) -> None:
        """A new revision: the standby of an older one is stopped, unless it is live already."""
        if self.successor is not None and _is_live(self.successor):
            self._finish_cut_over()
        self._stop_successor()
        self._restarts.reset()
        self._previous_restarts.reset()
        self._watch_started_at = time.time()
        self._reporter.update(revision=spec.revision, outcome=Outcome.WORKING, reason="")

    # stops and exits

    def _stop(self, job: JobProcess) -> None:
        job.terminate()
        self._stopping.append(job)

    def _kill_overdue(self) -> None:
        for job in self._stopping:
            if job.stopping_seconds() > self._timeouts.stop:
                job.kill()
        self._stopping = [i for i in self._stopping if i.alive()]

    def _stop_successor(self) -> None:
        if self.successor is not None:
            self._stop(self.successor)
            self._forget_successor()

    def _forget_successor(self) -> None:
        """After the cut-over was requested, it may have fenced the live job, which is then started again too."""
        if self._cut_over_at is not None:
            self._stop_live()
        self.successor = self._cut_over_at = None

    def _stop_live(self) -> None:
        if self.live is not None:
            self._stop(self.live)
            self.live = None

    def _stop_all(self, spec: DeploymentSpec) -> None:
        self._stop_successor()
        self._stop_live()
        if not self._stopping:
            phase = Phase.PAUSED if spec.goal is Goal.PAUSED else Phase.RETIRED
            self._reporter.update(phase=phase, outcome=Outcome.DONE, pid=None, reason="")

    def _reap(self, spec: DeploymentSpec) -> None:
        """Handles the exit of the live job: it is started again later, or the change is rolled back."""
        if self.live is None or self.live.alive():
            return
        ended, self.live = self.live, None
        if self._cut_over_at is not None and self.successor is not None and self.successor.alive():
            # fenced: it has exited before its successor has reported that it is live
            self._reporter.update(fenced=ended.record.release, fenced_at=now(), fenced_from={})
            return
        code = ended.exit_code()
        reason = ended.kill_reason or _exit_reason(code, ended.last_error())
        self._reporter.record("exited", ended, reason)
        self._reporter.update(phase=Phase.WAITING, reason=reason, restarts=self._reporter.status.restarts + 1, pid=None)
        if not ended.matches(spec.process):
            self._previous_restarts.exited(code, broker_stable=self._broker_stable)
            return
        counts = self._restarts.exited(code, broker_stable=self._broker_stable)
        if counts and (problem := self._restarts.health.crash_loop(time.time())):
            self._reporter.roll_back(spec, f"{problem}; it {reason}")

    # starts

    def _needs_standby(self, spec: DeploymentSpec) -> bool:
        """State that is rebuilt or fresh is made by a standby, even if no job is live."""
        return spec.state != "keep" and not self._reporter.status.has(spec)

    def _start_live(self, spec: DeploymentSpec) -> None:
        self.live = self._restarts.start(spec, standby=False)
        if self.live is not None:
            self._reporter.update(phase=Phase.STARTING, pid=self.live.record.pid)

    # replacement by another release, or by another process of the same release

    def _replace(self, spec: DeploymentSpec) -> None:
        if spec.state == "rebuild" and spec.before is not None and self._cut_over_at is None:
            self._keep_previous_running(spec.before)
        if self.successor is not None and not self.successor.matches(spec.process):
            self._stop_successor()
        if self.successor is None:
            self.successor = self._restarts.start(spec, standby=True, replaces=self.live is not None)
            if self.successor is not None:
                self._reporter.update(phase=Phase.STANDBY)
            return
        status = self.successor.status()
        if _is_live(self.successor):
            self._finish_cut_over()
        elif not self.successor.alive():
            self._successor_failed(spec)
        elif self._cut_over_at is not None:
            if self._broker_stable and time.time() - self._cut_over_at > self._timeouts.cut_over:
                self.successor.kill()
        elif status is not None and status.phase is JobPhase.READY and self._launcher.prepared(spec):
            if self._live_must_stop_first():
                return
            job_spec = spec.job_spec(self._restarts.generation(), standby=False)
            self._cut_over_at = time.time()
            self.successor.send(job_spec)
            self._reporter.update(phase=Phase.CUTTING_OVER)
        elif self._broker_stable and (slow := self._standby_problem(spec, self.successor)):
            self._stop_successor()
            self._reporter.roll_back(spec, slow)

    def _live_must_stop_first(self) -> bool:
        """Whether an unfenced job may still write: it is stopped before its successor goes live."""
        if self.live is not None and _writes_unfenced(self.live):
            self._reporter.update(fenced=self.live.record.release, fenced_at=now(), fenced_from={})
            self._stop_live()
        return any(_writes_unfenced(job) for job in self._stopping)

    def _keep_previous_running(self, before: DeploymentSpec) -> None:
        """A rebuild takes long: meanwhile the previous release keeps running, and is restarted if it exits."""
        if before.goal is not Goal.RUNNING or not self._reporter.status.has(before):
            return
        if self.live is None:
            self.live = self._previous_restarts.start(before, standby=False)
        elif (status := self._live_status(self.live, self.live.status())) is not None:
            self._update_status(status)
            self._reporter.update(phase=Phase.STANDBY, reason="")
            if self._broker_stable:
                self._kill_if_hung(self.live, status, self._trigger(before))

    def _standby_problem(self, spec: DeploymentSpec, job: JobProcess) -> str:
        """Why a standby will not become ready; a rebuild may take long while it makes progress."""
        status, at = job.status(), time.time()
        if spec.state == "rebuild" and status is not None and status.phase is JobPhase.STANDBY:
            is_stuck = stuck(status, at, self._trigger(spec), self._broker_stable_seconds, self._timeouts.hung)
            return f"no batch has ended for {at - status.last_progress_at:.0f} s on standby" if is_stuck else ""
        late = at - job.record.started_at > self._timeouts.start
        return f"it was not ready after {self._timeouts.start:.0f} s" if late else ""

    def _successor_failed(self, spec: DeploymentSpec) -> None:
        assert self.successor is not None
        ended = self.successor
        self._forget_successor()
        reason = ended.kill_reason or ended.last_error()
        self._reporter.record("exited", ended, reason)
        if self._restarts.exited(ended.exit_code(), broker_stable=self._broker_stable):
            self._reporter.update(reason=reason, phase=self._reporter.status.phase if self.live else Phase.WAITING)
            self._reporter.roll_back(spec, f"it exited before it was live: {reason}")

    def _finish_cut_over(self) -> None:
        assert self.successor is not None
        before, self.live = self.live, self.successor
        self.successor = self._cut_over_at = None
        status = self.live.status()
        self._reporter.update(fenced_from=status.since if status is not None else {})
        if before is not None:
            self._stop(before)
            self._reporter.update(fenced=before.record.release, fenced_at=now())

    def _record_live(self, status: JobStatus) -> None:
        assert self.live is not None
        self.live.raise_priority()
        self._watch_started_at = time.time()
        began = self.live.record.started_at
        took = f"Spark after {status.session_started_at - began:.1f} s"
        if status.since:  # one of several replicas may start without a partition
            took = (
                f"from {format_offsets(status.since)}; {took}, its query after {status.query_started_at - began:.1f} s"
            )
        self._reporter.record("live", self.live, took)

    # a live job

    def _update_live(self, spec: DeploymentSpec, status: JobStatus | None) -> None:
        """Sends the newest spec to the live job, and reports how the job applied it."""
        assert self.live is not None
        generation = status.generation if status is not None else self.live.record.generation
        job_spec = spec.job_spec(generation, standby=False)
        if self.live.spec() != job_spec:
            self.live.send(job_spec)
            return
        if (status := self._live_status(self.live, status)) is None:
            return
        if status.rejected and status.revision == spec.revision:
            self._reporter.roll_back(spec, status.rejected)
            return
        self._update_status(status)
        if status.circuit_open and self._reporter.status.phase is not Phase.CIRCUIT_OPEN:
            self._reporter.record("circuit open", self.live, status.circuit_open)
        if status.revision == spec.revision and self._reporter.status.outcome is Outcome.WORKING:
            self._reporter.update(outcome=Outcome.WATCHED if spec.before is not None else Outcome.DONE)
        self._reporter.update(
            phase=Phase.CIRCUIT_OPEN if status.circuit_open else Phase.RUNNING, reason=status.circuit_open
        )

    def _live_status(self, live: JobProcess, status: JobStatus | None) -> JobStatus | None:
        """The status of a job that is live; one that is not live in time is killed."""
        if status is not None and status.phase is JobPhase.LIVE:
            return status
        if time.time() - live.record.started_at > self._timeouts.start:
            live.kill()
        return None

    def _kill_if_hung(self, live: JobProcess, status: JobStatus, trigger: timedelta) -> None:
        at = time.time()
        is_stuck = stuck(status, at, trigger, self._broker_stable_seconds, self._timeouts.hung)
        if is_stuck and not live.stopping_seconds():
            self._kill(live, "hung", f"no batch has ended for {at - status.last_progress_at:.0f} s")

    def _update_status(self, status: JobStatus) -> None:
        assert self.live is not None
        if self._reporter.status.generation != status.generation:
            self._record_live(status)
        elif self._reporter.status.digest != status.digest:
            self._reporter.record("settings", self.live, f"{status.digest} from {format_offsets(status.since)}")
        self._reporter.update(
            release=self.live.record.release,
            process=self.live.record.process,
            generation=status.generation,
            digest=status.digest,
            since=status.since,
            pid=status.pid,
        )

    def _check_health(self, spec: DeploymentSpec, status: JobStatus | None) -> None:
        assert self.live is not None
        at = time.time()
        if not self._broker_stable:
            self._watch_started_at = at
            return
        if status is None or status.phase is not JobPhase.LIVE or self.live.stopping_seconds():
            return
        trigger = self._trigger(spec)
        self._kill_if_hung(self.live, status, trigger)
        if self._reporter.status.outcome is not Outcome.WATCHED:
            return
        if problem := self._restarts.health.problem(status, at, trigger, self._broker_stable_seconds):
            self._reporter.roll_back(spec, problem)
        elif at - self._watch_started_at > max(spec.watch, 1.5 * trigger.total_seconds()):  # it has committed once
            self._reporter.update(outcome=Outcome.DONE)

    def _trigger(self, spec: DeploymentSpec) -> timedelta:
        if spec.trigger is not None:
            return spec.trigger
        return self._launcher.declaration(spec).trigger if self._launcher.prepared(spec) else timedelta(minutes=1)

    def _enforce_memory_limit(self) -> None:
        """Kills a job that uses more memory than its limit; checks once a second."""
        if time.time() - self._memory_checked_at < 1:
            return
        self._memory_checked_at = time.time()
        for job in (self.live, self.successor):
            if job is not None and not job.stopping_seconds():
                used, limit = job.memory_bytes() // 2**20, job.record.memory_mb
                if used > limit:
                    self._kill(job, "out of memory", f"killed at {used} MB, its limit is {limit} MB")

    def _kill(self, job: JobProcess, what: str, why: str) -> None:
        self._reporter.record(what, job, why)
        job.kill_reason = f"was killed, {what}: {why}"
        job.kill()


def _exit_reason(code: int | None, error: str) -> str:
    """How a job ended. A job that was killed logs no error, and one that was stopped has none."""
    if code is None:
        return f"was killed by a signal: {error}"
    if code == 0:
        return "exited with code 0"
    killed_by = code - SIGNALLED
    return f"was killed by signal {killed_by}" if killed_by == signal.SIGKILL else f"exited with code {code}: {error}"


def _writes_unfenced(job: JobProcess) -> bool:
    """Whether Spark's sink may still write for it without a fence; the sink stops before the processes do."""
    status = job.status()
    return status is not None and not status.fenced and status.finished_at < job.record.started_at


def _is_live(job: JobProcess) -> bool:
    """Whether it is live."""
    status = job.status()
    return status is not None and status.phase is JobPhase.LIVE


def _live_generation(job: JobProcess) -> int:
    """The generation of a live job; 0 if it has not reported."""
    status = job.status()
    return status.generation if status is not None else 0


def _has_cut_over_spec(job: JobProcess) -> bool:
    """Whether its newest spec says that it should be live."""
    spec = job.spec()
    return spec is not None and not spec.standby
