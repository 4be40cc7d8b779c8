"""One decision in the making: what was seen of a replica, and what has been decided so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from lozenge_deploy.agent.actions import Action, AppendEvent, Kill, ReplicaState, RollBack, Start, Terminate
from lozenge_deploy.agent.observation import JobId, JobView, Observed
from lozenge_deploy.agent.start_backoff import NO_BROKER
from lozenge_deploy.control.records import ChangeOutcome, DeploymentSpec, DeploymentStatus, DetectorPhase


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Decision:
    """What is remembered from now on, what is reported, and what is done, in this order."""

    state: ReplicaState
    status: DeploymentStatus
    actions: Sequence[Action]


class Tick:
    """One decision in the making: what was seen, and what has been decided so far."""

    def __init__(
        self,
        spec: DeploymentSpec,
        status: DeploymentStatus,
        state: ReplicaState,
        seen: Observed,
        timeouts: Timeouts,
    ) -> None:
        self.spec, self.status, self.state, self.seen, self.timeouts = spec, status, state, seen, timeouts
        self._actions: list[Action] = []
        self._ending: set[JobId] = set()

    def decision(self) -> Decision:
        """What is decided by now."""
        return Decision(self.state, self.status, self._actions)

    @property
    def live(self) -> JobView | None:
        return self.seen.jobs.get(self.state.live) if self.state.live is not None else None

    @property
    def successor(self) -> JobView | None:
        return self.seen.jobs.get(self.state.successor) if self.state.successor is not None else None

    @property
    def broker_stable_seconds(self) -> float:
        """For how long neither the broker was unavailable, nor the jobs unknown, nor a Spark host gone."""
        return min(self.seen.broker_stable_seconds, self.seen.now - self.state.unsettled_at)

    @property
    def broker_stable(self) -> bool:
        return self.broker_stable_seconds >= self.timeouts.broker_stable

    def is_ending(self, job: JobView) -> bool:
        """Whether it was requested to stop, or killed, now or earlier."""
        return job.stopping_seconds > 0 or job.id in self._ending

    def remember(self, **changes: object) -> None:
        self.state = replace(self.state, **changes)  # type: ignore[arg-type]

    def report(self, **changes: object) -> None:
        self.status = self.status.model_copy(update=changes)

    def do(self, action: Action) -> None:
        self._actions.append(action)

    def stop(self, job: JobView) -> None:
        self._ending.add(job.id)
        self.do(Terminate(job.id))
        self.remember(stopping=self.state.stopping | {job.id})

    def stop_live(self) -> None:
        if self.live is not None:
            self.stop(self.live)
            self.remember(live=None)

    def stop_successor(self) -> None:
        if self.successor is not None:
            self.stop(self.successor)
            self.forget_successor()

    def forget_successor(self) -> None:
        """After the cut-over was requested, it may have fenced the live job, which is then started again too."""
        if self.state.cut_over_at is not None:
            self.stop_live()
        self.remember(successor=None, cut_over_at=None)

    def kill(self, job: JobView, what: str, why: str) -> None:
        self._ending.add(job.id)
        self.do(AppendEvent(what, job.id, why))
        self.do(Kill(job.id, f"was killed, {what}: {why}"))


def start(
    tick: Tick,
    spec: DeploymentSpec,
    *,
    standby: bool = False,
    of_previous: bool = False,
    phase: DetectorPhase | None = None,
) -> bool:
    """Starts a job; false if it is too early, or its environment is still built."""
    replaces = standby and tick.live is not None
    if tick.seen.now < tick.state.restarts_of(previous=of_previous).next_start_at:
        return False
    if not (tick.seen.previous_prepared if of_previous else tick.seen.prepared):
        tick.report(phase=tick.status.phase if replaces else DetectorPhase.PREPARING)
        return False
    tick.do(Start(spec, standby, replaces, of_previous, phase))
    return True


def count_exit(tick: Tick, ended: JobView, *, of_previous: bool = False) -> bool:
    """Counts the exit of a job against its release; false if it does not count.

    The exit of a job without a broker, of one that was stopped, and of one that has lost its Spark host, does not.
    After the last, all detectors of that host start at the same time, so nothing is evaluated for a while.
    """
    if ended.lost_host:
        tick.remember(unsettled_at=tick.seen.now)
    has_failed = not ended.ended_in_order and not ended.lost_host
    counts = tick.broker_stable and ended.exit_code != NO_BROKER and has_failed
    restarts = tick.state.restarts_of(previous=of_previous).exited(tick.seen.now, counts=counts)
    tick.state = tick.state.with_restarts(restarts, previous=of_previous)
    return counts


def report_fenced(tick: Tick, job: JobView, since: Mapping[int, int]) -> None:
    """A job is replaced by one that processes from the offsets `since` on; they are empty until they are known."""
    at = datetime.fromtimestamp(tick.seen.now, UTC)
    tick.report(fenced=job.record.release, fenced_at=at, fenced_from=dict(since))


def roll_back(tick: Tick, reason: str) -> None:
    """Rolls back; without an earlier spec it only reports the failure. A change that was good once is kept.

    It rolls back by one step: the previous spec is watched again if its own watch window had not ended.
    """
    before = tick.spec.before
    if before is not None and tick.status.outcome not in (ChangeOutcome.WORKING, ChangeOutcome.WATCHED):
        return
    tick.report(outcome=ChangeOutcome.FAILED, reason=reason)
    if before is not None:
        tick.do(RollBack(tick.spec, reason))
