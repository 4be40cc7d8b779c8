"""Several replicas of one detector with simulated jobs: how many run, in which spec, reported as one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lozenge.protocol.job_status import JobPhase
from lozenge_deploy.agent.replica_set import ReplicaSet
from lozenge_deploy.control.records import ChangeOutcome, DeploymentSpec, DeploymentStatus, DetectorPhase, Goal
from lozenge_deploy.supervision.job_process import JobProcess
from tests.deploy.agent.controllers import ControllerHarness
from tests.deploy.agent.simulated_jobs import SimulatedJobs

NEVER = 3600.0


class ReplicaSetHarness(ControllerHarness):
    """A harness with a replica set in place of a controller."""

    replica_set: ReplicaSet

    def new_controller(self, status: DeploymentStatus) -> ReplicaSet:  # type: ignore[override]
        self.newest_status = status
        self.replica_set = ReplicaSet(
            self.folder,
            self.jobs,
            lambda: self.newest,
            status,
            on_status=self.take,
            on_event=self.note,
            on_change=self.apply,
            clock=self.jobs.clock,
        )
        return self.replica_set

    def take(self, status: DeploymentStatus) -> None:
        self.newest_status = status

    @property
    def status(self) -> DeploymentStatus:
        return self.newest_status

    def running(self) -> list[JobProcess]:
        return self.replica_set.running()


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[ReplicaSetHarness]:
    first = DeploymentSpec(detector="spotter", revision="one", release="r1", watch=NEVER, instances=3)
    harness = ReplicaSetHarness(tmp_path / "spotter", first, SimulatedJobs())
    yield harness
    harness.close()


def test_it_starts_as_many_replicas_as_requested_each_with_its_own_generation(harness: ReplicaSetHarness) -> None:
    harness.until_runs()
    assert sorted(i.record.generation for i in harness.running()) == [1, 2, 3]
    assert sorted(i.folder.parent.name for i in harness.running()) == ["spotter", "spotter.1", "spotter.2"]
    assert [o.phase for o in harness.status.instances] == [DetectorPhase.RUNNING] * 3
    assert all(spec is not None and spec.shared for spec in (i.spec() for i in harness.running()))


def test_the_last_replica_has_all_partitions_once_the_others_have_exited(harness: ReplicaSetHarness) -> None:
    harness.until_runs()
    first = min(harness.running(), key=lambda i: i.record.generation)
    harness.change("two", instances=1)

    def alone() -> bool:
        spec = first.spec()
        assert spec is not None
        assert spec.shared or len(harness.running()) == 1
        return not spec.shared

    harness.until(alone)
    harness.until_runs()
    assert harness.running()[0].record == first.record
    assert (harness.status.instances, harness.status.restarts) == ([], 0)


def test_a_surplus_replica_runs_until_the_remaining_ones_do(harness: ReplicaSetHarness) -> None:
    harness.until_runs()
    stays = next(i for i in harness.running() if i.folder.parent.name == "spotter")
    stays.kill()
    harness.until(lambda: not stays.alive())
    harness.change("two", instances=1)

    def alone() -> bool:
        assert any((status := i.status()) is not None and status.phase is JobPhase.LIVE for i in harness.running())
        return len(harness.running()) == 1

    harness.until(alone)
    harness.until_runs()
    assert [i.folder.parent.name for i in harness.running()] == ["spotter"]


def test_a_replica_that_crashes_is_restarted_and_the_others_keep_running(harness: ReplicaSetHarness) -> None:
    harness.until_runs()
    dead, *others = harness.running()
    dead.kill()
    harness.until(lambda: harness.status.restarts == 1)
    harness.until_runs()
    assert {i.record.pid for i in others} < {i.record.pid for i in harness.running()}
    assert len(harness.running()) == 3


def test_another_agent_adopts_all_of_them(harness: ReplicaSetHarness) -> None:
    harness.until_runs()
    before = {i.record.pid for i in harness.running()}
    harness.controller = harness.new_controller(harness.status)  # type: ignore[assignment]
    harness.until_runs()
    assert {i.record.pid for i in harness.running()} == before
    assert harness.status.restarts == 0


def test_a_problem_of_one_replica_rolls_back_all(harness: ReplicaSetHarness) -> None:
    harness.until_runs()
    before = {i.record.pid for i in harness.running()}
    harness.change("two", release="r2 crash at start")
    harness.until(lambda: harness.spec.undoes == "two")
    harness.until_runs()
    harness.until(lambda: {i.record.pid for i in harness.running()} == before)  # the unhealthy ones have exited by then
    assert harness.status.outcome in (ChangeOutcome.WATCHED, ChangeOutcome.DONE)


def test_pausing_ends_all_of_them(harness: ReplicaSetHarness) -> None:
    harness.until_runs()
    harness.change("two", goal=Goal.PAUSED)
    harness.until(lambda: harness.status.revision == "two" and harness.status.outcome is ChangeOutcome.DONE)
    assert harness.running() == []
