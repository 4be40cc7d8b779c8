"""A keeper with real processes in the part of jobs: what it starts, relieves, ends and judges."""

import os
import signal
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
import psutil
import pytest

from lozenge.errors import BrokerUnavailable, LozengeError
from lozenge.process.atomic_write import replace
from lozenge_deploy.agent import health, restart_policy
from lozenge_deploy.agent.controller import Patience
from lozenge_deploy.control.records import DeploymentSpec, Goal, Outcome, Phase
from lozenge_deploy.supervision.job_process import RECORD, job_processes
from tests.deploy.keeping import House

NEVER = 3600.0


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path / "spotter", DeploymentSpec(detector="spotter", revision="one", release="r1", watch=NEVER))
    yield house
    house.leave()


def test_starts_what_is_desired_and_tells_when_it_is_live(house: House) -> None:
    house.until_runs()
    assert house.observed.outcome is Outcome.DONE  # there is nothing to fall back to, so nothing to watch for
    assert (house.observed.release, house.observed.generation, house.observed.since) == ("r1", 1, {0: 7})
    assert house.observed.pid == psutil.Process(house.live.record.pid).children()[0].pid
    assert [h.what for h in house.history] == ["started", "live"]


def test_a_change_of_settings_reaches_the_same_process(house: House) -> None:
    house.until_runs()
    before = house.live.record.pid
    house.change("two", settings={"limit": 3})
    house.until_runs()
    assert house.live.record.pid == before
    assert house.happened("settings")
    assert (house.observed.outcome, house.observed.digest) == (Outcome.WATCHED, "{'limit': 3}")


def test_a_change_is_done_once_it_has_been_watched(house: House) -> None:
    house.until_runs()
    house.change("two", settings={"limit": 3}, watch=0.2)
    house.until(lambda: house.observed.revision == "two" and house.observed.outcome is Outcome.DONE)


def test_another_keeper_adopts_what_runs(house: House) -> None:
    house.until_runs()
    before = house.live.record
    house.keeper = house.new_keeper(house.observed)
    assert house.live.record == before
    house.until(lambda: house.happened("adopted"))
    house.change("two", settings={"limit": 3})
    house.until_runs()
    assert len(house.happened("started")) == 1


def test_another_keeper_adopts_one_that_is_not_live_yet(house: House) -> None:
    house.until(lambda: house.keeper.live)
    before = house.live.record
    house.keeper = house.new_keeper(house.observed)
    house.until_runs()
    assert house.live.record == before
    assert len(house.happened("started")) == 1


def test_a_recycled_process_number_is_not_adopted(house: House) -> None:
    house.until_runs()
    somebody = house.live
    replace(
        somebody.folder / RECORD,
        msgspec.json.encode(
            msgspec.structs.replace(somebody.record, pid=os.getpid(), created=somebody.record.created - 100)
        ).decode(),
    )
    again = house.new_keeper(house.observed)
    assert again.running() == []


def test_a_release_relieves_another_without_a_gap(house: House) -> None:
    house.until_runs()
    before = house.live
    house.change("two", release="r2")
    house.until(lambda: house.keeper.next)
    assert before.alive()
    house.until_runs()
    assert house.observed.release == "r2"
    assert house.generation() > before.record.generation
    assert house.observed.fenced == "r1"
    assert house.live.folder != before.folder
    house.until(lambda: house.keeper.running() == [house.live])
    assert before.exit_code() == 0


def test_another_keeper_goes_on_with_a_relief(house: House) -> None:
    house.until_runs()
    house.change("two", release="r2")
    house.until(lambda: house.keeper.next)
    house.keeper = house.new_keeper(house.observed)
    assert house.keeper.next is not None
    house.until_runs()
    assert house.observed.release == "r2"
    assert len(house.happened("started standing by")) == 1


def test_another_keeper_leaves_the_one_that_was_just_relieved(house: House) -> None:
    house.wait_only(Patience(stop=0.3))
    house.wish(house.desired.but(release="r1 deaf"))
    house.until_runs()
    relieved = house.live
    house.change("two", release="r2")
    house.until_runs()
    assert relieved.alive()
    new = house.live.record
    house.keeper = house.new_keeper(house.observed)
    assert house.live.record == new
    house.until(lambda: not relieved.alive())
    house.until_runs()
    assert house.live.record == new


def test_one_in_real_time_mode_is_relieved_once_it_tells_nothing_more(house: House) -> None:
    house.wish(house.desired.but(release="r1 realtime"))
    house.until_runs()
    before = house.live
    house.change("two", release="r2")
    house.until(lambda: house.observed.fenced)
    for _ in range(20):
        house.keeper.tick(house.desired, house.calm)
        time.sleep(0.02)
    assert house.keeper.next is not None
    assert house.keeper.next.spec() == house.desired.job_spec(2, standby=True)
    (house.folder / "quiet").touch()
    house.until_runs()
    assert before.alive()
    (house.folder / "gone").touch()
    house.until(lambda: not before.alive())
    assert house.observed.restarts == 0


@pytest.mark.parametrize("behaviour", ["crash at start", "crash standing by"])
def test_one_that_crashes_standing_by_leaves_the_live_one_untouched(house: House, behaviour: str) -> None:
    house.until_runs()
    before = house.live.record
    house.change("two", release=f"r2 {behaviour}")
    house.until(lambda: house.desired.undoes == "two")
    house.until_runs()
    assert house.live.record == before
    assert house.observed.restarts == 0
    assert "it cannot" in house.desired.message
    assert (house.desired.release, house.desired.before, house.desired.by) == ("r1", None, "agent")


def test_one_that_never_gets_ready_is_dropped(house: House) -> None:
    house.until_runs()
    house.wait_only(Patience(start=2.0, calm=0.0))
    before = house.live
    house.change("two", release="r2 never ready")
    house.until(lambda: house.desired.undoes == "two")
    house.until_runs()
    house.until(lambda: house.keeper.running() == [before])


@pytest.mark.parametrize("behaviour", ["never goes", "crash when told to go"])
def test_after_a_relief_that_failed_half_way_the_old_release_starts_anew(house: House, behaviour: str) -> None:
    house.until_runs()
    house.wait_only(Patience(go=0.5, calm=0.0))
    before = house.live
    house.change("two", release=f"r2 {behaviour}")
    house.until(lambda: house.desired.undoes == "two")
    house.until_runs()
    assert house.observed.release == "r1"
    assert house.generation() > before.record.generation
    assert not before.alive()


def test_another_wish_in_the_middle_of_a_relief_drops_the_one_that_stands_by(house: House) -> None:
    house.until_runs()
    before = house.live
    house.change("two", release="r2 never ready")
    house.until(lambda: house.keeper.next)
    dropped = house.keeper.next
    assert dropped is not None
    house.change("three", release="r3")
    house.until_runs()
    assert house.observed.release == "r3"
    assert not dropped.alive()
    house.until(lambda: not before.alive())


def test_a_live_one_that_crashes_goes_on_in_its_folder_with_a_higher_generation(house: House) -> None:
    house.until_runs()
    folder = house.live.folder
    os.kill(house.observed.pid or 0, signal.SIGKILL)
    house.until(lambda: house.observed.generation == 2)
    house.until_runs()
    assert house.live.folder == folder
    assert house.observed.restarts == 1
    [ended] = house.happened("ended")
    assert ended.detail == "was killed by signal 9"


def test_one_that_crashes_again_and_again_waits_longer_each_time(house: House) -> None:
    house.wish(house.desired.model_copy(update={"release": "r1 crash when live"}))
    house.until(lambda: len(house.jobs.started) == 4)
    ends = [h.at.timestamp() for h in house.happened("ended")]
    starts = [i.record.started_at for i in house.jobs.started]
    waits = [start - end for start, end in zip(starts[1:], ends, strict=True)]
    assert waits[1] >= 1.0
    assert waits[2] >= 2.0
    assert [b.record.generation - a.record.generation for a, b in pairwise(house.jobs.started)] == [1, 1, 1]
    assert house.observed.outcome is Outcome.FAILED  # and there is nothing to go back to
    assert house.desired.revision == "one"


def test_a_crash_loop_after_a_change_leads_back(house: House) -> None:
    house.until_runs()
    house.change("two", release="r2 crash when live")
    house.until(lambda: house.desired.undoes == "two")
    house.until_runs()
    assert house.observed.release == "r1"
    assert "3 times" in house.desired.message


def test_a_change_while_another_one_is_watched_leads_back_to_it_and_then_further(house: House) -> None:
    house.until_runs()
    house.change("two", release="r2 crash when limited")
    house.until_runs()
    house.change("three", settings={"bad": 1})
    house.until(lambda: house.desired.undoes == "three")
    house.until_runs()
    assert (house.observed.release, house.observed.outcome) == ("r2 crash when limited", Outcome.WATCHED)
    house.change("four", settings={"limit": 1})
    house.until(lambda: house.desired.undoes == "four")
    house.until_runs()
    assert (house.observed.release, house.desired.settings) == ("r2 crash when limited", {})
    assert (len(house.happened("undone")), house.happened("rolled back")) == (2, [])  # the release itself is good
    house.until(lambda: house.observed.outcome is Outcome.WATCHED)
    for _ in range(health.EXITS):
        before = house.live
        before.kill()
        house.until(lambda: house.keeper.live not in (None, before))  # noqa: B023 - called at once
    house.until(lambda: house.observed.release == "r1" and house.runs(house.desired.revision))
    assert (house.desired.before, house.observed.outcome) == (None, Outcome.DONE)
    assert [h.release for h in house.happened("rolled back")] == ["r2 crash when limited"]


def test_a_crash_loop_long_after_a_change_does_not(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "EXITS", 1)
    house.until_runs()
    house.change("two", settings={"limit": 3}, watch=0.1)
    house.until(lambda: house.observed.revision == "two" and house.observed.outcome is Outcome.DONE)
    house.live.kill()
    house.until(lambda: house.generation() == 2)
    assert (house.desired.revision, house.observed.outcome) == ("two", Outcome.DONE)


def test_one_that_hangs_is_killed_and_started_again(house: House) -> None:
    house.wish(house.desired.model_copy(update={"release": "r1 hangs"}))
    house.until(lambda: len(house.jobs.started) == 2)
    assert len(house.happened("hung")) == 1
    assert house.happened("ended")[0].detail.startswith("was ended, hung")


def test_nobody_is_judged_while_the_broker_is_away(house: House) -> None:
    house.calm = 0.0
    house.wish(house.desired.model_copy(update={"release": "r1 hangs", "watch": 0.0}))
    house.until(lambda: house.observed.phase is Phase.RUNNING)
    before = house.live
    for _ in range(50):
        house.keeper.tick(house.desired, house.calm)
    assert before.alive()
    before.kill()
    house.until(lambda: len(house.jobs.started) == 2)
    assert not house.keeper._starter.health.exits


def test_one_that_finds_no_broker_tries_again_and_again(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restart_policy, "NO_BROKER_WAIT", 0.0)
    house.until_runs()
    house.change("two", release="r2 no broker")
    house.until(lambda: len(house.jobs.started) == 6)
    assert house.desired.revision == "two"
    assert house.observed.outcome is Outcome.WORKING
    assert house.live.record.release == "r1"


def test_a_broker_that_is_away_at_a_start_is_no_fault_of_a_release(house: House) -> None:
    house.until_runs()
    house.change("two", release="r2")
    house.jobs.error = BrokerUnavailable("looking for r2")
    with pytest.raises(BrokerUnavailable):
        house.until(lambda: False)
    assert house.desired.revision == "two"
    house.jobs.error = None
    house.until_runs()


def test_a_release_that_cannot_be_started_leads_back(house: House) -> None:
    house.until_runs()
    house.change("two", release="r2")
    house.jobs.error = LozengeError("making its environment: no such package")
    house.until(lambda: house.desired.undoes == "two")
    assert "no such package" in house.desired.message


def test_one_that_takes_too_much_memory_is_killed(house: House) -> None:
    house.wish(house.desired.model_copy(update={"release": "r1 eats memory", "memory_mb": 100}))
    house.until(lambda: house.happened("out of memory"))
    house.until(lambda: house.happened("ended"))
    assert len(house.happened("out of memory")) == 1


def test_refused_settings_lead_back_to_those_before(house: House) -> None:
    house.until_runs()
    before = house.live.record
    house.change("two", settings={"bad": 1})
    house.until(lambda: house.desired.undoes == "two")
    assert house.desired.message == "bad: no such setting"
    house.until_runs()
    assert house.live.record == before
    assert house.observed.outcome is Outcome.DONE


def test_dead_letters_lead_back(house: House) -> None:
    house.until_runs()
    house.change("two", release="r2 dead letters")
    house.until(lambda: house.desired.undoes == "two")
    assert "dead letters" in house.desired.message


def test_one_that_parks_on_trial_leads_back(house: House) -> None:
    house.until_runs()
    house.change("two", release="r2 parked")
    house.until(lambda: house.desired.undoes == "two")
    assert house.desired.message == "it is parked: it raises on 10 of 10 records"


def test_one_that_parks_later_is_left_alone_and_told_until_it_goes_on(house: House) -> None:
    house.wish(house.desired.but(release="r1 parked"))
    house.until(lambda: house.observed.phase is Phase.PARKED)
    assert house.observed.reason == "it raises on 10 of 10 records"
    pid = house.observed.pid
    (house.folder / "mended").touch()
    house.until_runs()
    assert (house.observed.reason, house.observed.pid, house.observed.restarts) == ("", pid, 0)
    assert [h.what for h in house.history] == ["started", "live", "parked"]


@pytest.mark.parametrize("goal", [Goal.PAUSED, Goal.RETIRED])
def test_what_is_not_wanted_any_more_ends_and_comes_back_when_it_is(house: House, goal: Goal) -> None:
    house.until_runs()
    before = house.live
    house.change("two", goal=goal)
    house.until(lambda: house.observed.phase in (Phase.PAUSED, Phase.RETIRED))
    assert (before.alive(), before.exit_code(), house.observed.pid) == (False, 0, None)
    assert not house.happened("ended")
    house.change("three", goal=Goal.RUNNING)
    house.until_runs()
    assert (house.live.folder, house.generation()) == (before.folder, 2)


def test_one_that_does_not_end_when_asked_is_killed(house: House) -> None:
    house.wait_only(Patience(stop=0.3))
    house.wish(house.desired.model_copy(update={"release": "r1 deaf"}))
    house.until_runs()
    before = house.live
    house.change("two", goal=Goal.PAUSED)
    house.until(lambda: house.observed.phase is Phase.PAUSED)
    assert (before.alive(), before.exit_code()) == (False, None)


def test_a_keeper_that_came_later_tells_how_a_job_ended_meanwhile(house: House) -> None:
    house.until_runs()
    observed = house.observed
    os.kill(observed.pid or 0, signal.SIGTERM)
    while house.live.alive():
        time.sleep(0.01)
    house.keeper = house.new_keeper(observed)
    house.until(lambda: house.generation() == 2)
    [ended] = house.happened("ended")
    assert "code 0" in ended.detail


def test_state_that_is_made_anew_is_made_standing_by_though_nobody_is_live(house: House) -> None:
    house.wish(house.desired.model_copy(update={"state": "rebuild"}))
    house.until_runs()
    assert [h.what for h in house.history] == ["started standing by", "live"]
    assert house.observed.fenced == ""


def test_what_is_to_be_relieved_goes_on_while_state_is_rebuilt_also_after_it_died(house: House) -> None:
    house.until_runs()
    house.change("two", release="r2 ready when told", state="rebuild")
    house.until(lambda: house.keeper.next)
    standby = house.keeper.next
    for generation in (3, 4, 5, 6):  # more often than a crash loop has exits: they are not the new release's
        house.live.kill()
        house.until(lambda: house.generation() == generation)  # noqa: B023 - called at once
    assert (house.observed.release, house.desired.revision) == ("r1", "two")
    assert house.keeper.next is standby
    house.keeper = house.new_keeper(house.observed)  # another agent adopts both
    assert house.live.record.release == "r1"
    assert house.keeper.next is not None
    assert standby is not None
    assert house.keeper.next.record == standby.record
    (house.folder / "ready").touch()
    house.until_runs()
    assert (house.observed.release, house.desired.revision) == ("r2 ready when told", "two")


def test_a_rebuild_that_comes_no_further_is_dropped(house: House) -> None:
    house.until_runs()
    before = house.live
    house.change("two", release="r2 never ready and hangs", state="rebuild")
    house.until(lambda: house.desired.undoes == "two")
    assert "no batch has ended" in house.desired.message
    house.until_runs()
    house.until(lambda: house.keeper.running() == [before])


def test_generations_rise_above_what_has_ever_committed(house: House) -> None:
    house.newest = 41
    house.until_runs()
    assert house.generation() == 42
    assert [i.folder.name for i in job_processes(house.folder)] == ["g42"]
