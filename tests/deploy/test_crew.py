"""Several instances of one detector with real processes in the part of jobs: how many, in which order, told as one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lozenge.protocol.job_status import Phase as JobPhase
from lozenge_deploy.agent.replica_set import ReplicaSet
from lozenge_deploy.control.records import DeploymentSpec, DeploymentStatus, Goal, Outcome, Phase
from lozenge_deploy.supervision.job_process import JobProcess
from tests.deploy.keeping import House

NEVER = 3600.0


class CrewHouse(House):
    """A house whose keeper is a crew."""

    crew: ReplicaSet

    def new_keeper(self, observed: DeploymentStatus) -> ReplicaSet:  # type: ignore[override]
        self.told = observed
        self.crew = ReplicaSet(
            self.folder,
            self.jobs,
            lambda: self.newest,
            observed,
            say=self.say,
            tell=self.history.append,
            wish=self.wish,
        )
        return self.crew

    def say(self, observed: DeploymentStatus) -> None:
        self.told = observed

    @property
    def observed(self) -> DeploymentStatus:
        return self.told

    def running(self) -> list[JobProcess]:
        return self.crew.running()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[CrewHouse]:
    house = CrewHouse(
        tmp_path / "spotter", DeploymentSpec(detector="spotter", revision="one", release="r1", watch=NEVER, instances=3)
    )
    yield house
    house.leave()


def test_starts_as_many_as_are_desired_each_as_a_generation_of_its_own(house: CrewHouse) -> None:
    house.until_runs()
    assert sorted(i.record.generation for i in house.running()) == [1, 2, 3]
    assert sorted(i.folder.parent.name for i in house.running()) == ["spotter", "spotter.1", "spotter.2"]
    assert [o.phase for o in house.observed.instances] == [Phase.RUNNING] * 3
    assert all(order is not None and order.shared for order in (i.spec() for i in house.running()))


def test_the_last_one_has_its_partitions_for_itself_once_the_others_have_ended(house: CrewHouse) -> None:
    house.until_runs()
    first = min(house.running(), key=lambda i: i.record.generation)
    house.change("two", instances=1)

    def alone() -> bool:
        order = first.spec()
        assert order is not None
        assert order.shared or len(house.running()) == 1
        return not order.shared

    house.until(alone)
    house.until_runs()
    assert house.running()[0].record == first.record
    assert (house.observed.instances, house.observed.restarts) == ([], 0)


def test_one_that_goes_works_on_until_those_that_stay_do(house: CrewHouse) -> None:
    house.until_runs()
    stays = next(i for i in house.running() if i.folder.parent.name == "spotter")
    stays.kill()
    house.until(lambda: not stays.alive())
    house.change("two", instances=1)

    def alone() -> bool:
        assert any((report := i.status()) is not None and report.phase is JobPhase.LIVE for i in house.running())
        return len(house.running()) == 1

    house.until(alone)
    house.until_runs()
    assert [i.folder.parent.name for i in house.running()] == ["spotter"]


def test_one_that_dies_is_started_again_and_the_others_go_on(house: CrewHouse) -> None:
    house.until_runs()
    dead, *others = house.running()
    dead.kill()
    house.until(lambda: house.observed.restarts == 1)
    house.until_runs()
    assert {i.record.pid for i in others} < {i.record.pid for i in house.running()}
    assert len(house.running()) == 3


def test_another_agent_adopts_all_of_them(house: CrewHouse) -> None:
    house.until_runs()
    before = {i.record.pid for i in house.running()}
    house.keeper = house.new_keeper(house.observed)  # type: ignore[assignment]
    house.until_runs()
    assert {i.record.pid for i in house.running()} == before
    assert house.observed.restarts == 0


def test_what_one_of_them_finds_ill_is_taken_back_for_all(house: CrewHouse) -> None:
    house.until_runs()
    before = {i.record.pid for i in house.running()}
    house.change("two", release="r2 crash at start")
    house.until(lambda: house.desired.undoes == "two")
    house.until_runs()
    house.until(lambda: {i.record.pid for i in house.running()} == before)  # what was ill has ended by then
    assert house.observed.outcome in (Outcome.WATCHED, Outcome.DONE)


def test_pausing_ends_all_of_them(house: CrewHouse) -> None:
    house.until_runs()
    house.change("two", goal=Goal.PAUSED)
    house.until(lambda: house.observed.revision == "two" and house.observed.outcome is Outcome.DONE)
    assert house.running() == []
