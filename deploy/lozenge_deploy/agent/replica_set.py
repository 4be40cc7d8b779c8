"""The replicas of one detector on this machine: each has a controller, and all are reported as one."""

import time
from collections.abc import Callable
from pathlib import Path

from lozenge_deploy.agent.controller import Controller, JobLauncher
from lozenge_deploy.agent.status_reporter import StatusReporter
from lozenge_deploy.agent.tick import TIMEOUTS, Timeouts
from lozenge_deploy.control.records import (
    ChangeOutcome,
    DeploymentSpec,
    DeploymentStatus,
    DetectorPhase,
    Goal,
    HistoryEvent,
)
from lozenge_deploy.supervision.job_process import JobProcess, newest_generation

_WORKING = (DetectorPhase.RUNNING, DetectorPhase.CIRCUIT_OPEN)
_WORST_FIRST = (ChangeOutcome.FAILED, ChangeOutcome.WORKING, ChangeOutcome.WATCHED, ChangeOutcome.DONE)


class ReplicaSet:
    """Keeps as many replicas of a detector as its spec requests; they divide the partitions among themselves.

    Replica 0 has its jobs in `folder`, the others in folders next to it. `newest` returns the generation that
    committed last, `clock` the Unix seconds. The callbacks are those of `StatusReporter`.
    """

    def __init__(
        self,
        folder: Path,
        launcher: JobLauncher,
        newest: Callable[[], int],
        status: DeploymentStatus,
        *,
        on_status: Callable[[DeploymentStatus], None],
        on_event: Callable[[HistoryEvent], None],
        on_change: Callable[[DeploymentSpec], None],
        timeouts: Timeouts = TIMEOUTS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder, self._launcher, self._committed = folder, launcher, newest
        self._on_status, self._on_event, self._on_change = on_status, on_event, on_change
        self._timeouts, self._clock = timeouts, clock
        self._changed = False
        self._status = status
        self._reporters: list[StatusReporter] = []
        self._controllers: list[Controller] = []
        for one in status.instances or [status]:
            self._add(one)

    @property
    def folders(self) -> list[Path]:
        """The folder of each replica."""
        return [self._folder_of(ordinal) for ordinal in range(len(self._controllers))]

    @property
    def status(self) -> DeploymentStatus:
        """What was reported last."""
        return self._status

    def running(self) -> list[JobProcess]:
        """Every job that has a process."""
        return [job for controller in self._controllers for job in controller.running()]

    def tick(self, spec: DeploymentSpec, broker_stable_seconds: float) -> None:
        """Takes the next step of each replica; the broker has been available for `broker_stable_seconds`."""
        while len(self._controllers) < spec.instances:
            self._add(DeploymentStatus(detector=spec.detector, location=self._status.location))
        self._changed = False
        for ordinal, controller in enumerate(self._controllers):
            controller.tick(self._spec_of(spec, ordinal), broker_stable_seconds)
            if self._changed:  # `spec` is no longer the spec of the others
                break
        while len(self._controllers) > spec.instances and not self._controllers[-1].running():
            del self._controllers[-1], self._reporters[-1]
        self._report()

    def _spec_of(self, spec: DeploymentSpec, ordinal: int) -> DeploymentSpec:
        """The spec of one replica. The last one that remains shares its partitions until the others have exited.

        Surplus replicas run until the others do: one of them may be the only one that runs.
        """
        remaining = spec.instances
        if ordinal < remaining:
            shares = remaining == 1 and any(controller.running() for controller in self._controllers[remaining:])
            return spec.model_copy(update={"instances": 2}) if shares else spec
        others_work = all(reporter.status.phase in _WORKING for reporter in self._reporters[:remaining])
        if self._controllers[ordinal].running() and not others_work:
            return spec.model_copy(update={"instances": ordinal + 1})
        return spec.model_copy(update={"goal": Goal.PAUSED})

    def _add(self, status: DeploymentStatus) -> None:
        reporter = StatusReporter(status, lambda _: None, self._on_event, self._change)
        folder = self._folder_of(len(self._controllers))
        self._reporters.append(reporter)
        self._controllers.append(
            Controller(folder, self._launcher, self._newest, reporter, self._timeouts, self._clock)
        )

    def _folder_of(self, ordinal: int) -> Path:
        return self._folder if ordinal == 0 else self._folder.with_name(f"{self._folder.name}.{ordinal}")

    def _newest(self) -> int:
        """The newest generation that committed, or with which a replica was started."""
        return max(self._committed(), *(newest_generation(self._launcher.found(folder)) for folder in self.folders))

    def _change(self, spec: DeploymentSpec) -> None:
        self._changed = True
        self._on_change(spec)

    def _report(self) -> None:
        status = merged([reporter.status for reporter in self._reporters])
        if status != self._status:
            self._status = status
            self._on_status(status)


def merged(all_: list[DeploymentStatus]) -> DeploymentStatus:
    """One status of all replicas: the worst outcome, and the revision of the slowest."""
    first = all_[0]
    if len(all_) == 1:
        return first
    slowest = next((status for status in all_ if status.revision != first.revision), first)
    unhealthy = next((status for status in all_ if status.phase is not DetectorPhase.RUNNING), first)
    return first.model_copy(
        update={
            "revision": slowest.revision,
            "outcome": min((status.outcome for status in all_), key=_WORST_FIRST.index),
            "phase": unhealthy.phase,
            "reason": next((status.reason for status in all_ if status.reason), ""),
            "restarts": sum(status.restarts for status in all_),
            "at": max(status.at for status in all_),
            "instances": all_,
        }
    )
