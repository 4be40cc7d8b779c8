"""Keeps one detector as it is desired: one live job, and beside it the one that is to relieve it."""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from lozenge.protocol.job_status import JobStatus
from lozenge.protocol.job_status import Phase as JobPhase
from lozenge_deploy.agent.health import stuck
from lozenge_deploy.agent.restart_policy import Launches, RestartPolicy
from lozenge_deploy.agent.status_reporter import StatusReporter
from lozenge_deploy.control.records import DeploymentSpec, Goal, Outcome, Phase, now, places
from lozenge_deploy.supervision.job_process import JobProcess, job_processes

SIGNALLED = 128
"""A shell adds it to the number of the signal by which its child was ended."""


@dataclass(frozen=True)
class Patience:
    """How long a keeper waits, in seconds.

    A job that is not ready after `start` never will be, unless it rebuilds state. One that was ordered to go live has
    `go` for it, one that was asked to end has `stop`. An unwatched job whose batch has not ended for `hung` is killed
    and started again. No job is called ill before the broker has answered for `calm`, nor so soon after it was found
    running.
    """

    start: float = 300.0
    go: float = 60.0
    stop: float = 30.0
    hung: float = 120.0
    calm: float = 45.0


PATIENCE = Patience()


class Controller:
    """One detector's jobs on this machine, in the folders below `folder`.

    All that it has to say goes through its `voice`. `newest` gives the generation that committed last.
    """

    def __init__(
        self,
        folder: Path,
        launcher: Launches,
        newest: Callable[[], int],
        voice: StatusReporter,
        patience: Patience = PATIENCE,
    ) -> None:
        self._folder, self._launcher, self._voice, self._patience = folder, launcher, voice, patience
        self._starter = RestartPolicy(folder, launcher, newest, voice)
        self._before = RestartPolicy(folder, launcher, newest, voice)  # exits of what is to be relieved are its own
        self.live: JobProcess | None = None
        self.next: JobProcess | None = None
        self._leaving: list[JobProcess] = []
        self._ordered_at: float | None = None
        self._watched_from = time.time()
        self._measured_at = 0.0
        self._adopted_at = 0.0
        self._calm_seconds = 0.0
        self._adopt()

    def running(self) -> list[JobProcess]:
        """Every job that has a process, live or not."""
        return [i for i in (self.live, self.next, *self._leaving) if i is not None and i.alive()]

    def tick(self, desired: DeploymentSpec, calm: float) -> None:
        """Does what is due; `calm` is for how many seconds the broker has been answering."""
        self._calm_seconds = min(calm, time.time() - self._adopted_at)
        if desired.revision != self._voice.observed.revision:
            self._begin(desired)
        self._let_go()
        if desired.goal is not Goal.RUNNING:
            self._rest(desired)
            return
        self._bury(desired)
        self._hold_memory()
        if self.live is not None and self.live.matches(desired.process):
            self._drop_next()
        if self.live is not None and self.live.matches(desired.process):
            report = self.live.status()
            self._tune(desired, report)
            self._judge(desired, report)
        elif self.live is not None or self.next is not None or self._needs_standby(desired):
            self._relieve(desired)
        else:
            self._revive(desired)

    @property
    def _calm(self) -> bool:
        return self._calm_seconds >= self._patience.calm

    # what was found

    def _adopt(self) -> None:
        """Takes over the processes that an earlier agent left running; one that ended meanwhile is buried next."""
        found = job_processes(self._folder)
        running = [i for i in found if i.alive()]
        live = [i for i in running if _goes(i)]
        told = [i for i in running if i not in live and _told_to_go(i)]
        waiting = [i for i in running if i not in live and i not in told]
        live.sort(key=_speaks_as)  # one that has been relieved may say for a moment that it is live
        if live and told:
            self.next, self._ordered_at = told.pop(0), time.time()
        elif waiting:
            self.next = waiting.pop(0)
        if live:
            self.live = live.pop()
        elif told:
            self.live = told.pop(0)
        for instance in (*live, *told, *waiting):
            self._leave(instance)
        if (adopted := self.live or self.next) is not None:
            self._adopted_at = time.time()
            self._voice.happened("adopted", adopted)
        elif found and self._voice.observed.pid is not None:
            self._adopted_at, self.live = time.time(), found[0]

    def _begin(self, desired: DeploymentSpec) -> None:
        """What stood by for an older wish goes, unless it is live already."""
        if self.next is not None and _goes(self.next):
            self._took_over()
        self._drop_next()
        self._starter.begin()
        self._before.begin()
        self._watched_from = time.time()
        self._voice.note(revision=desired.revision, outcome=Outcome.WORKING, reason="")

    # ends

    def _leave(self, instance: JobProcess) -> None:
        instance.terminate()
        self._leaving.append(instance)

    def _let_go(self) -> None:
        for instance in self._leaving:
            if instance.stopping_seconds() > self._patience.stop:
                instance.kill()
        self._leaving = [i for i in self._leaving if i.alive()]

    def _drop_next(self) -> None:
        if self.next is not None:
            self._leave(self.next)
            self._forget_next()

    def _forget_next(self) -> None:
        """Once it was told to go it may have fenced the live one: only a new start is sure to go on."""
        if self._ordered_at is not None:
            self._leave_live()
        self.next = self._ordered_at = None

    def _leave_live(self) -> None:
        if self.live is not None:
            self._leave(self.live)
            self.live = None

    def _rest(self, desired: DeploymentSpec) -> None:
        self._drop_next()
        self._leave_live()
        if not self._leaving:
            phase = Phase.PAUSED if desired.goal is Goal.PAUSED else Phase.RETIRED
            self._voice.note(phase=phase, outcome=Outcome.DONE, pid=None, reason="")

    def _bury(self, desired: DeploymentSpec) -> None:
        """Notices that the live job has ended, and decides when it is started again, or that it is not."""
        if self.live is None or self.live.alive():
            return
        dead, self.live = self.live, None
        if self._ordered_at is not None and self.next is not None and self.next.alive():
            # it noticed before its successor could say so
            self._voice.note(fenced=dead.record.release, fenced_at=now(), fenced_from={})
            return
        code = dead.exit_code()
        reason = dead.kill_reason or _why(code, dead.last_error())
        self._voice.happened("ended", dead, reason)
        self._voice.note(phase=Phase.WAITING, reason=reason, restarts=self._voice.observed.restarts + 1, pid=None)
        if not dead.matches(desired.process):
            self._before.ended(code, calm=self._calm)
        elif self._starter.ended(code, calm=self._calm) and (ill := self._starter.health.crash_loop(time.time())):
            self._voice.fall_back(desired, f"{ill}; it {reason}")

    # starts

    def _needs_standby(self, desired: DeploymentSpec) -> bool:
        """State that is not simply kept is made while it stands by, also where nobody is live."""
        return desired.state != "keep" and not self._voice.observed.has(desired)

    def _revive(self, desired: DeploymentSpec) -> None:
        self.live = self._starter.start(desired, standby=False)
        if self.live is not None:
            self._voice.note(phase=Phase.STARTING, pid=self.live.record.pid)

    # a release, or another process of the same one, takes over

    def _relieve(self, desired: DeploymentSpec) -> None:
        if desired.state == "rebuild" and desired.before is not None and self._ordered_at is None:
            self._keep_going(desired.before)
        if self.next is not None and not self.next.matches(desired.process):
            self._drop_next()
        if self.next is None:
            self.next = self._starter.start(desired, standby=True, relieves=self.live is not None)
            if self.next is not None:
                self._voice.note(phase=Phase.STANDBY)
            return
        report = self.next.status()
        if _goes(self.next):
            self._took_over()
        elif not self.next.alive():
            self._failed_before_live(desired)
        elif self._ordered_at is not None:
            if self._calm and time.time() - self._ordered_at > self._patience.go:
                self.next.kill()
        elif report is not None and report.phase is JobPhase.READY and self._launcher.prepared(desired):
            if self._live_must_end_first():
                return
            order = desired.job_spec(self._starter.generation(), standby=False)
            self._ordered_at = time.time()
            self.next.send(order)
            self._voice.note(phase=Phase.TAKING_OVER)
        elif self._calm and (slow := self._too_slow(desired, self.next)):
            self._drop_next()
            self._voice.fall_back(desired, slow)

    def _live_must_end_first(self) -> bool:
        """Whether a job that writes without a fence may still do so: it is ended before its successor begins."""
        if self.live is not None and _writes_unfenced(self.live):
            self._voice.note(fenced=self.live.record.release, fenced_at=now(), fenced_from={})
            self._leave_live()
        return any(_writes_unfenced(instance) for instance in self._leaving)

    def _keep_going(self, before: DeploymentSpec) -> None:
        """A rebuild takes long: the release that it is to relieve goes on meanwhile, also after it has died."""
        if before.goal is not Goal.RUNNING or not self._voice.observed.has(before):
            return
        if self.live is None:
            self.live = self._before.start(before, standby=False)
        elif (report := self._at_work(self.live, self.live.status())) is not None:
            self._note_live(report)
            self._voice.note(phase=Phase.STANDBY, reason="")
            if self._calm:
                self._end_if_hung(self.live, report, self._trigger(before))

    def _too_slow(self, desired: DeploymentSpec, instance: JobProcess) -> str:
        """Why one that stands by will not get ready; a rebuild may take its time as long as it comes forward."""
        report, at = instance.status(), time.time()
        if desired.state == "rebuild" and report is not None and report.phase is JobPhase.STANDBY:
            still = f"no batch has ended for {at - report.last_progress_at:.0f} s while it stood by"
            return still if stuck(report, at, self._trigger(desired), self._calm_seconds, self._patience.hung) else ""
        late = at - instance.record.started_at > self._patience.start
        return f"it was not ready after {self._patience.start:.0f} s" if late else ""

    def _failed_before_live(self, desired: DeploymentSpec) -> None:
        assert self.next is not None
        dead = self.next
        self._forget_next()
        words = dead.kill_reason or dead.last_error()
        self._voice.happened("ended", dead, words)
        if self._starter.ended(dead.exit_code(), calm=self._calm):
            self._voice.note(reason=words, phase=self._voice.observed.phase if self.live else Phase.WAITING)
            self._voice.fall_back(desired, f"it ended before it was live: {words}")

    def _took_over(self) -> None:
        assert self.next is not None
        before, self.live = self.live, self.next
        self.next = self._ordered_at = None
        report = self.live.status()
        self._voice.note(fenced_from=report.since if report is not None else {})
        if before is not None:
            self._leave(before)
            self._voice.note(fenced=before.record.release, fenced_at=now())

    def _went_live(self, report: JobStatus) -> None:
        assert self.live is not None
        self.live.raise_priority()
        self._watched_from = time.time()
        began = self.live.record.started_at
        took = f"Spark after {report.session_started_at - began:.1f} s"
        if report.since:  # one of several instances begins without any partition
            took = f"from {places(report.since)}; {took}, its query after {report.query_started_at - began:.1f} s"
        self._voice.happened("live", self.live, took)

    # a live job

    def _tune(self, desired: DeploymentSpec, report: JobStatus | None) -> None:
        """Sees to it that the live job has the newest order, and notes what it made of it."""
        assert self.live is not None
        generation = report.generation if report is not None else self.live.record.generation
        order = desired.job_spec(generation, standby=False)
        if self.live.spec() != order:
            self.live.send(order)
            return
        if (report := self._at_work(self.live, report)) is None:
            return
        if report.rejected and report.revision == desired.revision:
            self._voice.fall_back(desired, report.rejected)
            return
        self._note_live(report)
        if report.circuit_open and self._voice.observed.phase is not Phase.PARKED:
            self._voice.happened("parked", self.live, report.circuit_open)
        if report.revision == desired.revision and self._voice.observed.outcome is Outcome.WORKING:
            self._voice.note(outcome=Outcome.WATCHED if desired.before is not None else Outcome.DONE)
        self._voice.note(phase=Phase.PARKED if report.circuit_open else Phase.RUNNING, reason=report.circuit_open)

    def _at_work(self, live: JobProcess, report: JobStatus | None) -> JobStatus | None:
        """The report once it is live by it; one that does not get so far is killed."""
        if report is not None and report.phase is JobPhase.LIVE:
            return report
        if time.time() - live.record.started_at > self._patience.start:
            live.kill()
        return None

    def _end_if_hung(self, live: JobProcess, report: JobStatus, trigger: timedelta) -> None:
        if not live.stopping_seconds() and stuck(report, time.time(), trigger, self._calm_seconds, self._patience.hung):
            self._end(live, "hung", f"no batch has ended for {time.time() - report.last_progress_at:.0f} s")

    def _note_live(self, report: JobStatus) -> None:
        assert self.live is not None
        if self._voice.observed.generation != report.generation:
            self._went_live(report)
        elif self._voice.observed.digest != report.digest:
            self._voice.happened("settings", self.live, f"{report.digest} from {places(report.since)}")
        self._voice.note(
            release=self.live.record.release,
            process=self.live.record.process,
            generation=report.generation,
            digest=report.digest,
            since=report.since,
            pid=report.pid,
        )

    def _judge(self, desired: DeploymentSpec, report: JobStatus | None) -> None:
        assert self.live is not None
        at = time.time()
        if not self._calm:
            self._watched_from = at
            return
        if report is None or report.phase is not JobPhase.LIVE or self.live.stopping_seconds():
            return
        trigger = self._trigger(desired)
        self._end_if_hung(self.live, report, trigger)
        if self._voice.observed.outcome is not Outcome.WATCHED:
            return
        if ill := self._starter.health.illness(report, at, trigger, self._calm_seconds):
            self._voice.fall_back(desired, ill)
        elif at - self._watched_from > max(desired.watch, 1.5 * trigger.total_seconds()):  # it has committed once
            self._voice.note(outcome=Outcome.DONE)

    def _trigger(self, desired: DeploymentSpec) -> timedelta:
        if desired.trigger is not None:
            return desired.trigger
        return self._launcher.declaration(desired).trigger if self._launcher.prepared(desired) else timedelta(minutes=1)

    def _hold_memory(self) -> None:
        """Kills what takes more memory than it may; looks once a second."""
        if time.time() - self._measured_at < 1:
            return
        self._measured_at = time.time()
        for instance in (self.live, self.next):
            if instance is not None and not instance.stopping_seconds():
                used, limit = instance.memory_bytes() // 2**20, instance.record.memory_mb
                if used > limit:
                    self._end(instance, "out of memory", f"killed at {used} MB, its limit is {limit} MB")

    def _end(self, instance: JobProcess, what: str, why: str) -> None:
        self._voice.happened(what, instance, why)
        instance.kill_reason = f"was ended, {what}: {why}"
        instance.kill()


def _why(code: int | None, words: str) -> str:
    """How a job ended: one that was killed had no time for words of its own, one that was told to end needs none."""
    if code is None:
        return f"ended by a signal: {words}"
    if code == 0:
        return "ended in order, with code 0"
    killed = code - SIGNALLED
    return f"was killed by signal {killed}" if killed == signal.SIGKILL else f"ended with code {code}: {words}"


def _writes_unfenced(instance: JobProcess) -> bool:
    """Whether Spark's sink may write for it, which knows no fence; that is over before its processes are."""
    report = instance.status()
    return report is not None and not report.fenced and report.finished_at < instance.record.started_at


def _goes(instance: JobProcess) -> bool:
    """Whether it is live."""
    report = instance.status()
    return report is not None and report.phase is JobPhase.LIVE


def _speaks_as(instance: JobProcess) -> int:
    """The generation as which it is live; 0 if it has not reported."""
    report = instance.status()
    return report.generation if report is not None else 0


def _told_to_go(instance: JobProcess) -> bool:
    order = instance.spec()
    return order is not None and not order.standby
