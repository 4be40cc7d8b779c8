"""A controller: what it starts, replaces, stops and rolls back, with simulated jobs and, at the end, with processes."""

import os
import signal
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from lozenge.errors import BrokerUnavailable, LozengeError, SparkGone
from lozenge_deploy.agent import controller, health
from lozenge_deploy.agent.start_backoff import NO_BROKER_SECONDS
from lozenge_deploy.agent.tick import Timeouts
from lozenge_deploy.control.records import ChangeOutcome, DeploymentSpec, DetectorPhase, Goal
from tests.deploy.agent.controllers import ControllerHarness
from tests.deploy.agent.simulated_jobs import STEP_SECONDS, SimulatedJobs

NEVER = 3600.0
FIRST = DeploymentSpec(detector="spotter", revision="one", release="r1", watch=NEVER)


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[ControllerHarness]:
    harness = ControllerHarness(tmp_path / "spotter", FIRST, SimulatedJobs())
    yield harness
    harness.close()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[ControllerHarness]:
    """A harness whose jobs are processes."""
    harness = ControllerHarness(tmp_path / "spotter", FIRST)
    yield harness
    harness.close()


def test_it_starts_the_release_of_the_spec_and_reports_when_it_is_live(harness: ControllerHarness) -> None:
    harness.until_runs()
    assert harness.status.outcome is ChangeOutcome.DONE  # there is nothing to fall back to, so nothing to watch for
    assert (harness.status.release, harness.status.generation, harness.status.since) == ("r1", 1, {0: 7})
    status = harness.live.status()
    assert status is not None
    assert harness.status.pid == status.pid
    assert [h.what for h in harness.history] == ["started", "live"]


def test_a_change_of_settings_reaches_the_same_process(harness: ControllerHarness) -> None:
    harness.until_runs()
    before = harness.live.record.pid
    harness.change("two", settings={"limit": 3})
    harness.until_runs()
    assert harness.live.record.pid == before
    assert harness.events("settings")
    assert (harness.status.outcome, harness.status.digest) == (ChangeOutcome.WATCHED, "{'limit': 3}")


def test_a_change_is_done_once_it_has_been_watched(harness: ControllerHarness) -> None:
    harness.until_runs()
    harness.change("two", settings={"limit": 3}, watch=0.2)
    harness.until(lambda: harness.status.revision == "two" and harness.status.outcome is ChangeOutcome.DONE)


def test_another_controller_adopts_the_running_job(harness: ControllerHarness) -> None:
    harness.until_runs()
    before = harness.live.record
    harness.restart()
    assert harness.live.record == before
    harness.until(lambda: harness.events("adopted"))
    harness.change("two", settings={"limit": 3})
    harness.until_runs()
    assert len(harness.events("started")) == 1


def test_another_controller_adopts_a_job_that_is_not_live_yet(harness: ControllerHarness) -> None:
    harness.until(lambda: harness.controller.live)
    before = harness.live.record
    harness.restart()
    harness.until_runs()
    assert harness.live.record == before
    assert len(harness.events("started")) == 1


def test_a_release_replaces_another_without_a_gap(harness: ControllerHarness) -> None:
    harness.until_runs()
    before = harness.live
    harness.change("two", release="r2")
    harness.until(lambda: harness.controller.successor)
    assert before.alive()
    harness.until_runs()
    assert harness.status.release == "r2"
    assert harness.generation() > before.record.generation
    assert harness.status.fenced == "r1"
    assert harness.live.folder != before.folder
    harness.until(lambda: harness.controller.running() == [harness.live])
    assert before.exit_code() == 0


def test_another_controller_continues_a_replacement(harness: ControllerHarness) -> None:
    harness.until_runs()
    harness.change("two", release="r2")
    harness.until(lambda: harness.controller.successor)
    harness.restart()
    assert harness.controller.successor is not None
    harness.until_runs()
    assert harness.status.release == "r2"
    assert len(harness.events("started as standby")) == 1


def test_another_controller_stops_the_job_that_was_just_replaced(harness: ControllerHarness) -> None:
    harness.use_timeouts(Timeouts(stop=0.3))
    harness.apply(harness.spec.updated(release="r1 deaf"))
    harness.until_runs()
    replaced = harness.live
    harness.change("two", release="r2")
    harness.until_runs()
    assert replaced.alive()
    new = harness.live.record
    harness.restart()
    assert harness.live.record == new
    harness.until(lambda: not replaced.alive())
    harness.until_runs()
    assert harness.live.record == new


def test_a_job_in_real_time_mode_is_replaced_once_it_publishes_nothing_more(harness: ControllerHarness) -> None:
    harness.apply(harness.spec.updated(release="r1 realtime"))
    harness.until_runs()
    before = harness.live
    harness.change("two", release="r2")
    harness.until(lambda: harness.status.fenced)
    for _ in range(20):
        harness.tick()
    assert harness.controller.successor is not None
    assert harness.controller.successor.spec() == harness.spec.job_spec(2, standby=True)
    (harness.folder / "quiet").touch()
    harness.until_runs()
    assert before.alive()
    (harness.folder / "gone").touch()
    harness.until(lambda: not before.alive())
    assert harness.status.restarts == 0


@pytest.mark.parametrize("behaviour", ["crash at start", "crash as standby"])
def test_a_crash_on_standby_leaves_the_live_job_untouched(harness: ControllerHarness, behaviour: str) -> None:
    harness.until_runs()
    before = harness.live.record
    harness.change("two", release=f"r2 {behaviour}")
    harness.until(lambda: harness.spec.undoes == "two")
    harness.until_runs()
    assert harness.live.record == before
    assert harness.status.restarts == 0
    assert "it cannot" in harness.spec.message
    assert (harness.spec.release, harness.spec.before, harness.spec.by) == ("r1", None, "agent")


def test_a_standby_that_is_never_ready_is_stopped(harness: ControllerHarness) -> None:
    harness.until_runs()
    harness.use_timeouts(Timeouts(start=2.0, broker_stable=0.0))
    before = harness.live
    harness.change("two", release="r2 never ready")
    harness.until(lambda: harness.spec.undoes == "two")
    harness.until_runs()
    harness.until(lambda: harness.controller.running() == [before])


@pytest.mark.parametrize("behaviour", ["never live", "crash at cut-over"])
def test_after_a_failed_cut_over_the_old_release_is_restarted(harness: ControllerHarness, behaviour: str) -> None:
    harness.until_runs()
    harness.use_timeouts(Timeouts(cut_over=0.5, broker_stable=0.0))
    before = harness.live
    harness.change("two", release=f"r2 {behaviour}")
    harness.until(lambda: harness.spec.undoes == "two")
    harness.until_runs()
    assert harness.status.release == "r1"
    assert harness.generation() > before.record.generation
    assert not before.alive()


def test_another_spec_during_a_replacement_stops_the_standby(harness: ControllerHarness) -> None:
    harness.until_runs()
    before = harness.live
    harness.change("two", release="r2 never ready")
    harness.until(lambda: harness.controller.successor)
    dropped = harness.controller.successor
    assert dropped is not None
    harness.change("three", release="r3")
    harness.until_runs()
    assert harness.status.release == "r3"
    assert not dropped.alive()
    harness.until(lambda: not before.alive())


def test_repeated_crashes_have_a_growing_backoff(harness: ControllerHarness) -> None:
    harness.apply(harness.spec.model_copy(update={"release": "r1 crash when live"}))
    harness.until(lambda: len(harness.jobs.started) == 4)
    ends = [h.at.timestamp() for h in harness.events("exited")]
    starts = [i.record.started_at for i in harness.jobs.started]
    waits = [start - end for start, end in zip(starts[1:], ends, strict=True)]
    assert waits[1] >= 1.0
    assert waits[2] >= 2.0
    assert [b.record.generation - a.record.generation for a, b in pairwise(harness.jobs.started)] == [1, 1, 1]
    assert harness.status.outcome is ChangeOutcome.FAILED  # and there is nothing to go back to
    assert harness.spec.revision == "one"


def test_a_crash_loop_after_a_change_rolls_it_back(harness: ControllerHarness) -> None:
    harness.until_runs()
    harness.change("two", release="r2 crash when live")
    harness.until(lambda: harness.spec.undoes == "two")
    harness.until_runs()
    assert harness.status.release == "r1"
    assert "3 times" in harness.spec.message


def test_a_change_in_the_watch_window_of_another_rolls_back_step_by_step(harness: ControllerHarness) -> None:
    harness.until_runs()
    harness.change("two", release="r2 crash when limited")
    harness.until_runs()
    harness.change("three", settings={"bad": 1})
    harness.until(lambda: harness.spec.undoes == "three")
    harness.until_runs()
    assert (harness.status.release, harness.status.outcome) == ("r2 crash when limited", ChangeOutcome.WATCHED)
    harness.change("four", settings={"limit": 1})
    harness.until(lambda: harness.spec.undoes == "four")
    harness.until_runs()
    assert (harness.status.release, harness.spec.settings) == ("r2 crash when limited", {})
    assert (len(harness.events("undone")), harness.events("rolled back")) == (2, [])  # the release itself is good
    harness.until(lambda: harness.status.outcome is ChangeOutcome.WATCHED)
    for _ in range(health.CRASH_LOOP_EXITS):
        before = harness.live
        before.kill()
        harness.until(lambda: harness.controller.live not in (None, before))  # noqa: B023 - called at once
    harness.until(lambda: harness.status.release == "r1" and harness.runs(harness.spec.revision))
    assert (harness.spec.before, harness.status.outcome) == (None, ChangeOutcome.DONE)
    assert [h.release for h in harness.events("rolled back")] == ["r2 crash when limited"]


def test_a_crash_loop_after_the_watch_window_does_not_roll_back(
    harness: ControllerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "CRASH_LOOP_EXITS", 1)
    harness.until_runs()
    harness.change("two", settings={"limit": 3}, watch=0.1)
    harness.until(lambda: harness.status.revision == "two" and harness.status.outcome is ChangeOutcome.DONE)
    harness.live.kill()
    harness.until(lambda: harness.generation() == 2)
    assert (harness.spec.revision, harness.status.outcome) == ("two", ChangeOutcome.DONE)


def test_a_job_that_hangs_is_killed_and_restarted(harness: ControllerHarness) -> None:
    harness.apply(harness.spec.model_copy(update={"release": "r1 hangs"}))
    harness.until(lambda: len(harness.jobs.started) == 2)
    assert len(harness.events("hung")) == 1
    assert harness.events("exited")[0].detail.startswith("was killed, hung")


def test_no_job_is_unhealthy_while_the_broker_is_unavailable(harness: ControllerHarness) -> None:
    harness.broker_stable_seconds = 0.0
    harness.apply(harness.spec.model_copy(update={"release": "r1 hangs", "watch": 0.0}))
    harness.until(lambda: harness.status.phase is DetectorPhase.RUNNING)
    before = harness.live
    for _ in range(50):
        harness.tick()
    assert before.alive()
    before.kill()
    harness.until(lambda: len(harness.jobs.started) == 2)
    assert not harness.controller.state.restarts.health.exits


def test_a_job_without_a_broker_is_restarted_without_backoff(harness: ControllerHarness) -> None:
    harness.until_runs()
    harness.change("two", release="r2 no broker")
    harness.until(lambda: len(harness.jobs.started) == 6)
    starts = [job.record.started_at for job in harness.jobs.started[1:]]
    assert all(b - a < NO_BROKER_SECONDS + 5 * STEP_SECONDS for a, b in pairwise(starts))
    assert harness.spec.revision == "two"
    assert harness.status.outcome is ChangeOutcome.WORKING
    assert harness.live.record.release == "r1"


def test_an_unavailable_broker_at_a_start_does_not_count_against_the_release(harness: ControllerHarness) -> None:
    harness.until_runs()
    harness.change("two", release="r2")
    harness.jobs.error = BrokerUnavailable("looking for r2")
    with pytest.raises(BrokerUnavailable):
        harness.until(lambda: False)
    assert harness.spec.revision == "two"
    harness.jobs.error = None
    harness.until_runs()


def test_a_release_that_cannot_be_started_is_rolled_back(harness: ControllerHarness) -> None:
    harness.until_runs()
    harness.change("two", release="r2")
    harness.jobs.error = LozengeError("making its environment: no such package")
    harness.until(lambda: harness.spec.undoes == "two")
    assert "no such package" in harness.spec.message


def test_rejected_settings_are_rolled_back(harness: ControllerHarness) -> None:
    harness.until_runs()
    before = harness.live.record
    harness.change("two", settings={"bad": 1})
    harness.until(lambda: harness.spec.undoes == "two")
    assert harness.spec.message == "bad: no such setting"
    harness.until_runs()
    assert harness.live.record == before
    assert harness.status.outcome is ChangeOutcome.DONE


def test_many_dead_letters_are_rolled_back(harness: ControllerHarness) -> None:
    harness.until_runs()
    harness.change("two", release="r2 dead letters")
    harness.until(lambda: harness.spec.undoes == "two")
    assert "dead letters" in harness.spec.message


def test_an_open_circuit_in_the_watch_window_is_rolled_back(harness: ControllerHarness) -> None:
    harness.until_runs()
    harness.change("two", release="r2 circuit open")
    harness.until(lambda: harness.spec.undoes == "two")
    assert harness.spec.message == "its circuit is open: it raises on 10 of 10 records"


def test_an_open_circuit_after_the_watch_window_is_reported_until_it_closes(harness: ControllerHarness) -> None:
    harness.apply(harness.spec.updated(release="r1 circuit open"))
    harness.until(lambda: harness.status.phase is DetectorPhase.CIRCUIT_OPEN)
    assert harness.status.reason == "it raises on 10 of 10 records"
    pid = harness.status.pid
    (harness.folder / "fixed").touch()
    harness.until_runs()
    assert (harness.status.reason, harness.status.pid, harness.status.restarts) == ("", pid, 0)
    assert [h.what for h in harness.history] == ["started", "live", "circuit open"]


@pytest.mark.parametrize("goal", [Goal.PAUSED, Goal.RETIRED])
def test_a_paused_or_retired_detector_stops_and_starts_again_on_resume(harness: ControllerHarness, goal: Goal) -> None:
    harness.until_runs()
    before = harness.live
    harness.change("two", goal=goal)
    harness.until(lambda: harness.status.phase in (DetectorPhase.PAUSED, DetectorPhase.RETIRED))
    assert (before.alive(), before.exit_code(), harness.status.pid) == (False, 0, None)
    assert not harness.events("exited")
    harness.change("three", goal=Goal.RUNNING)
    harness.until_runs()
    assert (harness.live.folder, harness.generation()) == (before.folder, 2)


def test_state_is_rebuilt_on_standby_even_if_no_job_is_live(harness: ControllerHarness) -> None:
    harness.apply(harness.spec.model_copy(update={"state": "rebuild"}))
    harness.until_runs()
    assert [h.what for h in harness.history] == ["started as standby", "live"]
    assert harness.status.fenced == ""


def test_the_previous_release_keeps_running_during_a_rebuild_also_after_crashes(harness: ControllerHarness) -> None:
    harness.until_runs()
    harness.change("two", release="r2 ready on signal", state="rebuild")
    harness.until(lambda: harness.controller.successor)
    standby = harness.controller.successor
    for generation in (3, 4, 5, 6):  # more often than a crash loop has exits: they are not the new release's
        harness.live.kill()
        harness.until(lambda: harness.generation() == generation)  # noqa: B023 - called at once
    assert (harness.status.release, harness.spec.revision) == ("r1", "two")
    assert harness.controller.successor is standby
    harness.restart()  # another agent adopts both
    assert harness.live.record.release == "r1"
    assert harness.controller.successor is not None
    assert standby is not None
    assert harness.controller.successor.record == standby.record
    (harness.folder / "ready").touch()
    harness.until_runs()
    assert (harness.status.release, harness.spec.revision) == ("r2 ready on signal", "two")


def test_a_rebuild_without_progress_is_rolled_back(harness: ControllerHarness) -> None:
    harness.until_runs()
    before = harness.live
    harness.change("two", release="r2 never ready and hangs", state="rebuild")
    harness.until(lambda: harness.spec.undoes == "two")
    assert "no batch has ended" in harness.spec.message
    harness.until_runs()
    harness.until(lambda: harness.controller.running() == [before])


def test_generations_rise_above_what_has_ever_committed(harness: ControllerHarness) -> None:
    harness.newest = 41
    harness.until_runs()
    assert harness.generation() == 42
    assert [i.folder.name for i in harness.jobs.found(harness.folder)] == ["g42"]


# with processes


def test_a_job_is_started_adopted_by_another_controller_and_sent_settings(processes: ControllerHarness) -> None:
    processes.until_runs()
    assert processes.status.pid == psutil.Process(processes.live.record.pid).children()[0].pid
    before = processes.live.record
    processes.restart()
    assert processes.live.record == before
    processes.change("two", settings={"limit": 3})
    processes.until_runs()
    assert processes.live.record == before
    assert processes.status.digest == "{'limit': 3}"
    assert [h.what for h in processes.history] == ["started", "live", "adopted", "settings"]


def test_the_process_of_a_release_replaces_that_of_another_and_ends_it(processes: ControllerHarness) -> None:
    processes.until_runs()
    before = processes.live
    processes.change("two", release="r2")
    processes.until(lambda: processes.controller.successor)
    assert before.alive()
    processes.until_runs()
    assert (processes.status.release, processes.status.fenced) == ("r2", "r1")
    processes.until(lambda: processes.controller.running() == [processes.live])
    assert before.exit_code() == 0


def test_a_live_job_that_is_killed_is_restarted_in_its_folder(processes: ControllerHarness) -> None:
    processes.until_runs()
    folder = processes.live.folder
    os.kill(processes.status.pid or 0, signal.SIGKILL)
    processes.until(lambda: processes.status.generation == 2)
    processes.until_runs()
    assert (processes.live.folder, processes.status.restarts) == (folder, 1)
    [exited] = processes.events("exited")
    assert exited.detail == "was killed by signal 9"


def test_a_later_controller_reports_how_a_job_ended_before(processes: ControllerHarness) -> None:
    processes.until_runs()
    status = processes.status
    os.kill(status.pid or 0, signal.SIGTERM)
    while processes.live.alive():
        time.sleep(0.01)
    processes.controller = processes.new_controller(status)
    processes.until(lambda: processes.generation() == 2)
    [exited] = processes.events("exited")
    assert "code 0" in exited.detail


def test_a_job_above_its_memory_limit_is_killed(processes: ControllerHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "MEMORY_SECONDS", 0.1)
    processes.apply(processes.spec.model_copy(update={"release": "r1 eats memory", "memory_mb": 100}))
    processes.until(lambda: processes.events("exited"))
    assert len(processes.events("out of memory")) == 1


def test_a_job_that_ignores_the_stop_is_killed(processes: ControllerHarness) -> None:
    processes.use_timeouts(Timeouts(stop=0.3))
    processes.apply(processes.spec.model_copy(update={"release": "r1 deaf"}))
    processes.until_runs()
    before = processes.live
    processes.change("two", goal=Goal.PAUSED)
    processes.until(lambda: processes.status.phase is DetectorPhase.PAUSED)
    assert (before.alive(), before.exit_code()) == (False, None)
    assert processes.status.outcome is ChangeOutcome.DONE


def test_after_the_end_of_its_host_a_job_starts_again_without_a_crash(harness: ControllerHarness) -> None:
    harness.jobs.host = "h1"
    harness.until_runs()
    before = harness.live
    harness.jobs.ended_hosts["h1"] = False
    harness.jobs.host = "h2"
    before.kill()
    harness.until(lambda: harness.status.spark_host == "h2")
    assert [event.detail for event in harness.events("exited")] == ["exited because its Spark host h1 has ended"]
    assert harness.status.restarts == 0


def test_hosts_that_do_not_start_fail_no_change(harness: ControllerHarness) -> None:
    harness.until_runs()
    harness.change("two", release="r2")
    harness.jobs.error = SparkGone("looking for a Spark host: no memory for a heap")
    harness.until(lambda: "no memory" in harness.status.reason)
    harness.jobs.error = None
    harness.until(lambda: harness.status.release == "r2")
    assert (harness.spec.revision, harness.events("rolled back")) == ("two", [])


def test_a_detector_that_is_alone_at_the_end_of_two_hosts_is_isolated(harness: ControllerHarness) -> None:
    for host in ("h1", "h2"):
        harness.jobs.host = host
        harness.until(lambda: harness.status.spark_host == host)  # noqa: B023
        harness.jobs.ended_hosts[host] = True
        harness.live.kill()
        harness.until(lambda: len(harness.events("exited")) == int(host[1]))  # noqa: B023
    [event] = harness.events("isolated")
    assert "2 times within 1 h" in event.detail
    assert (harness.spec.isolation, harness.spec.what, harness.spec.by) == ("own", "isolate", "agent")
    harness.jobs.host = ""
    harness.until_runs()
    assert harness.status.spark_host == ""
