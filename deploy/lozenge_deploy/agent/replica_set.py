"""The instances of one detector on this machine: each has a keeper, and all are told of as one."""

from collections.abc import Callable
from pathlib import Path

from lozenge_deploy.agent.controller import PATIENCE, Controller, Patience
from lozenge_deploy.agent.restart_policy import Launches
from lozenge_deploy.agent.status_reporter import StatusReporter
from lozenge_deploy.control.records import DeploymentSpec, DeploymentStatus, Goal, HistoryEvent, Outcome, Phase
from lozenge_deploy.supervision.job_process import JobProcess, newest_generation

_AT_WORK = (Phase.RUNNING, Phase.PARKED)
_WORST_FIRST = (Outcome.FAILED, Outcome.WORKING, Outcome.WATCHED, Outcome.DONE)


class ReplicaSet:
    """Keeps as many instances of a detector as are desired; who judges which partition they settle among themselves.

    The first one has its jobs in `folder`, the others beside it. `newest` gives the generation that committed last;
    `say`, `tell` and `wish` reach the detector's status, history and desired state.
    """

    def __init__(
        self,
        folder: Path,
        launcher: Launches,
        newest: Callable[[], int],
        observed: DeploymentStatus,
        *,
        say: Callable[[DeploymentStatus], None],
        tell: Callable[[HistoryEvent], None],
        wish: Callable[[DeploymentSpec], None],
        patience: Patience = PATIENCE,
    ) -> None:
        self._patience = patience
        self._folder, self._launcher, self._committed = folder, launcher, newest
        self._say, self._tell, self._wish = say, tell, wish
        self._wished = False
        self._said = observed
        self._voices: list[StatusReporter] = []
        self._keepers: list[Controller] = []
        for one in observed.instances or [observed]:
            self._hire(one)

    @property
    def folders(self) -> list[Path]:
        """Where its jobs are."""
        return [self._place(seat) for seat in range(len(self._keepers))]

    def running(self) -> list[JobProcess]:
        """Every job that has a process."""
        return [instance for keeper in self._keepers for instance in keeper.running()]

    def tick(self, desired: DeploymentSpec, calm: float) -> None:
        """Does what is due of each; `calm` is for how many seconds the broker has been answering."""
        while len(self._keepers) < desired.instances:
            self._hire(DeploymentStatus(detector=desired.detector, place=self._said.place))
        self._wished = False
        for seat, keeper in enumerate(self._keepers):
            keeper.tick(self._share(desired, seat), calm)
            if self._wished:  # what the others are to do is another thing now
                break
        while len(self._keepers) > desired.instances and not self._keepers[-1].running():
            del self._keepers[-1], self._voices[-1]
        self._speak()

    def _share(self, desired: DeploymentSpec, seat: int) -> DeploymentSpec:
        """What is desired of one; the last that stays shares its partitions until the others have ended.

        Those that go work on until those that stay do: one of them may be the only one that works.
        """
        stay = desired.instances
        if seat < stay:
            shares = stay == 1 and any(keeper.running() for keeper in self._keepers[stay:])
            return desired.model_copy(update={"instances": 2}) if shares else desired
        if self._keepers[seat].running() and any(v.observed.phase not in _AT_WORK for v in self._voices[:stay]):
            return desired.model_copy(update={"instances": seat + 1})
        return desired.model_copy(update={"goal": Goal.PAUSED})

    def _hire(self, observed: DeploymentStatus) -> None:
        voice = StatusReporter(observed, say=lambda _: None, tell=self._tell, wish=self._back)
        self._voices.append(voice)
        self._keepers.append(
            Controller(self._place(len(self._keepers)), self._launcher, self._newest, voice, self._patience)
        )

    def _place(self, seat: int) -> Path:
        return self._folder if seat == 0 else self._folder.with_name(f"{self._folder.name}.{seat}")

    def _newest(self) -> int:
        """The generation that committed last, or that any of them was started or ordered as."""
        return max(self._committed(), *(newest_generation(folder) for folder in self.folders))

    def _back(self, desired: DeploymentSpec) -> None:
        self._wished = True
        self._wish(desired)

    def _speak(self) -> None:
        told = merged([voice.observed for voice in self._voices])
        if told != self._said:
            self._said = told
            self._say(told)


def merged(all_: list[DeploymentStatus]) -> DeploymentStatus:
    """One detector out of its instances: as ill as the worst of them, and as far as the last."""
    first = all_[0]
    if len(all_) == 1:
        return first
    last = next((o for o in all_ if o.revision != first.revision), first)
    unwell = next((o for o in all_ if o.phase is not Phase.RUNNING), first)
    return first.model_copy(
        update={
            "revision": last.revision,
            "outcome": min((o.outcome for o in all_), key=_WORST_FIRST.index),
            "phase": unwell.phase,
            "reason": next((o.reason for o in all_ if o.reason), ""),
            "restarts": sum(o.restarts for o in all_),
            "at": max(o.at for o in all_),
            "instances": all_,
        }
    )
