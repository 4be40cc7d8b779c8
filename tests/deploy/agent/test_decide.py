"""What a controller decides, case by case, without processes, clocks or files."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from lozenge.contracts.isolation import Isolation
from lozenge.protocol.job_status import HOST_GONE, JobPhase, JobStatus
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
from lozenge_deploy.agent.decide import ISOLATION_SECONDS, decide
from lozenge_deploy.agent.health import CRASH_LOOP_EXITS
from lozenge_deploy.agent.observation import FailedStart, JobId, JobView, Observed
from lozenge_deploy.agent.start_backoff import NO_BROKER, NO_BROKER_SECONDS, StartBackoff
from lozenge_deploy.agent.tick import TIMEOUTS, Decision
from lozenge_deploy.control.deployments_view import Deployment
from lozenge_deploy.control.records import ChangeOutcome, DeploymentSpec, DeploymentStatus, DetectorPhase, Goal
from lozenge_deploy.supervision.job_process import StartRecord

AT = 1_000_000.0
STABLE = 10 * TIMEOUTS.broker_stable
OLD, NEW = (1, 1.0), (2, 2.0)
FIRST = DeploymentSpec(detector="spotter", revision="one", release="r1", watch=300.0)
SECOND = FIRST.updated(revision="two", release="r2", before=FIRST)
ONE = DeploymentStatus(detector="spotter", revision="one", release="r1", process=list(FIRST.process), generation=1)
RUNNING = ONE.model_copy(
    update={"outcome": ChangeOutcome.DONE, "phase": DetectorPhase.RUNNING, "pid": 7, "digest": "d"}
)
CHANGED = RUNNING.model_copy(update={"revision": "two", "outcome": ChangeOutcome.WORKING})


def job(
    id: JobId,
    spec: DeploymentSpec = FIRST,
    phase: JobPhase | None = JobPhase.LIVE,
    *,
    ordered: DeploymentSpec | None = None,
    standby: bool = False,
    generation: int = 0,
    age: float = 100.0,
    status: dict[str, Any] | None = None,
    **view: Any,
) -> JobView:
    """A job of `spec` with the last `ordered` spec; without a phase it has not reported yet."""
    generation = generation or id[0]
    record = StartRecord(
        detector="spotter",
        release=spec.release,
        process=list(spec.process),
        generation=generation,
        state=spec.state,
        memory_mb=1000,
        pid=id[0],
        created=id[1],
        started_at=AT - age,
    )
    reported = None
    if phase is not None:
        reported = JobStatus(
            7, 1.0, phase=phase, generation=generation, revision=spec.revision, digest="d", last_progress_at=AT
        )
        reported = msgspec.structs.replace(reported, **{"fenced": True} | (status or {}))
    return JobView(record, status=reported, spec=(ordered or spec).job_spec(generation, standby=standby), **view)


def decided(
    spec: DeploymentSpec,
    status: DeploymentStatus,
    state: ReplicaState,
    *jobs: JobView,
    stable: float = STABLE,
    **seen: Any,
) -> Decision:
    found = Observed(AT, stable, {each.id: each for each in jobs}, trigger=timedelta(seconds=1), **seen)
    return decide(spec, status, state, found)


def kinds(actions: Sequence[Action]) -> list[str]:
    return [type(action).__name__ for action in actions]


LIVE = ReplicaState(live=OLD, watch_started_at=AT - 10)
REPLACING = ReplicaState(live=OLD, successor=NEW, watch_started_at=AT - 10)
CUTTING_OVER = replace(REPLACING, cut_over_at=AT - 1)
STANDBY: dict[str, Any] = {"spec": SECOND, "standby": True}

# the live job


def test_nothing_is_done_while_all_is_well() -> None:
    found = decided(FIRST, RUNNING, LIVE, job(OLD))
    assert (found.actions, found.state) == ([], LIVE)
    assert found.status == RUNNING


def test_a_first_spec_starts_a_live_job() -> None:
    fresh = DeploymentStatus(detector="spotter")
    found = decided(FIRST, fresh, ReplicaState())
    assert found.actions == [Start(FIRST, phase=DetectorPhase.STARTING)]
    assert (found.status.revision, found.status.outcome) == ("one", ChangeOutcome.WORKING)


def test_nothing_starts_before_its_environment_is_prepared() -> None:
    found = decided(FIRST, DeploymentStatus(detector="spotter"), ReplicaState(), prepared=False)
    assert (found.actions, found.status.phase) == ([], DetectorPhase.PREPARING)


def test_a_job_that_has_just_become_live_is_recorded_and_gets_its_priority() -> None:
    starting = ONE.model_copy(update={"generation": 0, "outcome": ChangeOutcome.WORKING})
    found = decided(FIRST, starting, LIVE, job(OLD))
    assert kinds(found.actions) == ["RaisePriority", "AppendEvent"]
    assert (found.status.phase, found.status.outcome, found.status.generation) == (
        DetectorPhase.RUNNING,
        ChangeOutcome.DONE,
        1,
    )


def test_other_settings_are_sent_to_the_same_process() -> None:
    limited = FIRST.updated(revision="two", settings={"limit": 3}, before=FIRST)
    found = decided(limited, CHANGED, LIVE, job(OLD))
    assert found.actions == [Send(OLD, limited.job_spec(1, standby=False))]
    applied = job(OLD, limited, status={"digest": "e"})
    found = decided(limited, CHANGED, LIVE, applied)
    assert [a.what for a in found.actions if isinstance(a, AppendEvent)] == ["settings"]
    assert found.status.outcome is ChangeOutcome.WATCHED


def test_rejected_settings_are_rolled_back() -> None:
    limited = FIRST.updated(revision="two", settings={"limit": "x"}, before=FIRST)
    found = decided(limited, CHANGED, LIVE, job(OLD, limited, status={"rejected": "limit: no number"}))
    assert found.actions == [RollBack(limited, "limit: no number")]
    assert (found.status.outcome, found.status.reason) == (ChangeOutcome.FAILED, "limit: no number")


def test_a_change_that_was_good_once_is_not_rolled_back() -> None:
    done = CHANGED.model_copy(update={"outcome": ChangeOutcome.DONE, "release": "r2"})
    found = decided(SECOND, done, LIVE, job(OLD, SECOND, status={"rejected": "x"}))
    assert (found.actions, found.status.outcome) == ([], ChangeOutcome.DONE)


def test_an_open_circuit_is_recorded_once() -> None:
    opened = job(OLD, status={"circuit_open": "it raises"})
    found = decided(FIRST, RUNNING, LIVE, opened)
    assert kinds(found.actions) == ["AppendEvent"]
    assert (found.status.phase, found.status.reason) == (DetectorPhase.CIRCUIT_OPEN, "it raises")
    assert decided(FIRST, found.status, found.state, opened).actions == []


def test_a_refused_table_and_a_new_version_are_recorded_once_and_the_detector_says_why() -> None:
    refused = job(OLD, status={"tables": {"limits": "t1"}, "table_alarms": ["table limits: it has no rows"]})
    found = decided(FIRST, RUNNING, LIVE, refused)
    assert [(a.what, a.detail) for a in found.actions if isinstance(a, AppendEvent)] == [
        ("tables", "limits t1 from "),
        ("table refused", "table limits: it has no rows"),
    ]
    assert (found.status.phase, found.status.reason) == (DetectorPhase.RUNNING, "table limits: it has no rows")
    assert decided(FIRST, found.status, found.state, refused).actions == []
    good = decided(FIRST, found.status, found.state, job(OLD, status={"tables": {"limits": "t2"}, "since": {0: 7}}))
    assert [(a.what, a.detail) for a in good.actions if isinstance(a, AppendEvent)] == [
        ("tables", "limits t2 from 0:7")
    ]
    assert (good.status.reason, good.status.tables) == ("", {"limits": "t2"})


def test_a_job_that_is_not_live_in_time_is_killed() -> None:
    late = job(OLD, phase=JobPhase.STARTING, age=TIMEOUTS.start + 1)
    assert decided(FIRST, RUNNING, LIVE, late).actions == [Kill(OLD)]


def test_a_job_whose_batch_does_not_end_is_killed_unless_the_broker_was_away() -> None:
    hangs = job(OLD, status={"last_progress_at": AT - 2 * TIMEOUTS.hung})
    assert kinds(decided(FIRST, RUNNING, LIVE, hangs).actions) == ["AppendEvent", "Kill"]
    assert decided(FIRST, RUNNING, LIVE, hangs, stable=60.0).actions == []
    assert decided(FIRST, RUNNING, LIVE, replace(hangs, stopping_seconds=1.0)).actions == []


def test_a_job_above_its_memory_limit_is_killed_once() -> None:
    large = job(OLD, memory_mb=1001)
    assert kinds(decided(FIRST, RUNNING, LIVE, large).actions) == ["AppendEvent", "Kill"]
    assert decided(FIRST, RUNNING, LIVE, replace(large, stopping_seconds=0.1)).actions == []
    assert decided(FIRST, RUNNING, LIVE, job(OLD, memory_mb=1000)).actions == []


def test_the_watch_window_ends_and_time_without_a_broker_does_not_count() -> None:
    watched = RUNNING.model_copy(update={"outcome": ChangeOutcome.WATCHED})
    over = replace(LIVE, watch_started_at=AT - FIRST.watch - 1)
    assert decided(FIRST, watched, over, job(OLD)).status.outcome is ChangeOutcome.DONE
    found = decided(FIRST, watched, over, job(OLD), stable=1.0)
    assert (found.status.outcome, found.state.watch_started_at) == (ChangeOutcome.WATCHED, AT)


def test_an_unhealthy_job_in_its_watch_window_is_rolled_back() -> None:
    watched = CHANGED.model_copy(update={"outcome": ChangeOutcome.WATCHED, "release": "r2", "generation": 1})
    found = decided(SECOND, watched, LIVE, job(OLD, SECOND, status={"circuit_open": "it raises"}))
    assert RollBack(SECOND, "its circuit is open: it raises") in found.actions


# exits and starts


def dead(id: JobId, spec: DeploymentSpec = FIRST, **view: Any) -> JobView:
    return job(id, spec, alive=False, exit_code=view.pop("exit_code", 1), last_error="it fell over", **view)


def test_an_exit_is_recorded_and_the_job_is_started_again() -> None:
    found = decided(FIRST, RUNNING, LIVE, dead(OLD))
    assert found.actions == [
        AppendEvent("exited", OLD, "exited with code 1: it fell over"),
        Start(FIRST, phase=DetectorPhase.STARTING),
    ]
    assert (found.status.restarts, found.status.pid, found.state.live) == (1, None, None)


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        ({"exit_code": 137}, "was killed by signal 9"),
        ({"exit_code": None}, "was killed by a signal"),
        ({"kill_reason": "was killed, hung: x"}, "was killed, hung: x"),
    ],
)
def test_the_reason_of_an_exit_is_for_a_person(view: dict[str, Any], reason: str) -> None:
    assert decided(FIRST, RUNNING, LIVE, dead(OLD, **view)).status.reason == reason


def test_a_job_that_was_stopped_in_order_starts_again_and_is_neither_a_restart_nor_a_problem() -> None:
    found = decided(FIRST, RUNNING, LIVE, dead(OLD, exit_code=0))
    assert found.actions == [AppendEvent("exited", OLD, "exited with code 0")]
    assert (found.status.phase, found.status.restarts, found.status.reason) == (DetectorPhase.WAITING, 0, "")
    assert found.state.restarts == StartBackoff(next_start_at=AT + NO_BROKER_SECONDS)
    assert Deployment(FIRST, found.status).problem is None
    found = decided(FIRST, RUNNING, LIVE, dead(OLD, exit_code=0, kill_reason="was killed, hung: x"))
    assert (found.status.restarts, found.status.reason) == (1, "was killed, hung: x")


def test_the_second_exit_in_a_row_waits_for_its_backoff() -> None:
    once = replace(LIVE, restarts=StartBackoff().exited(AT - 5, counts=True))
    found = decided(FIRST, RUNNING, once, dead(OLD))
    assert kinds(found.actions) == ["AppendEvent"]
    assert found.state.restarts.next_start_at == AT + 1.0


def test_a_crash_loop_rolls_a_change_back_and_without_one_only_fails() -> None:
    restarts = StartBackoff()
    for second in range(CRASH_LOOP_EXITS - 1):
        restarts = restarts.exited(AT - 10 + second, counts=True)
    watched = CHANGED.model_copy(update={"outcome": ChangeOutcome.WATCHED, "release": "r2"})
    found = decided(SECOND, watched, replace(LIVE, restarts=restarts), dead(OLD, SECOND))
    assert kinds(found.actions) == ["AppendEvent", "RollBack"]
    first = RUNNING.model_copy(update={"outcome": ChangeOutcome.WORKING})
    found = decided(FIRST, first, replace(LIVE, restarts=restarts), dead(OLD))
    assert (kinds(found.actions), found.status.outcome) == (["AppendEvent"], ChangeOutcome.FAILED)


@pytest.mark.parametrize(("view", "stable"), [({"exit_code": NO_BROKER}, STABLE), ({"exit_code": 1}, 1.0)])
def test_an_exit_without_a_broker_does_not_count(view: dict[str, Any], stable: float) -> None:
    found = decided(FIRST, RUNNING, LIVE, dead(OLD, **view), stable=stable)
    assert found.state.restarts == StartBackoff(next_start_at=AT + NO_BROKER_SECONDS)


@pytest.mark.parametrize(("replaces", "rolls_back"), [(True, True), (False, False)])
def test_a_start_that_failed_is_rolled_back_at_once_if_it_was_to_replace(replaces: bool, rolls_back: bool) -> None:
    failed = FailedStart(of_previous=False, replaces=replaces, error="no such package")
    state = LIVE if replaces else ReplicaState()
    found = decided(SECOND, CHANGED, state, *([job(OLD)] if replaces else []), failed_start=failed)
    assert (RollBack(SECOND, "no such package") in found.actions) is rolls_back
    assert found.status.reason == "no such package"
    assert found.state.restarts.next_start_at > AT


def test_a_start_for_which_the_broker_did_not_answer_is_tried_again_and_does_not_count() -> None:
    failed = FailedStart(of_previous=False, replaces=True, error="")
    found = decided(SECOND, CHANGED, LIVE, job(OLD), failed_start=failed)
    assert (found.actions, found.state.restarts.health.exits) == ([], ())
    assert found.state.restarts.next_start_at == AT + NO_BROKER_SECONDS


# replacement


def test_another_release_starts_as_a_standby_next_to_the_live_job() -> None:
    found = decided(SECOND, RUNNING, LIVE, job(OLD))
    assert found.actions == [Start(SECOND, standby=True, replaces=True, phase=DetectorPhase.STANDBY)]
    assert (found.status.revision, found.status.outcome) == ("two", ChangeOutcome.WORKING)


def test_a_ready_standby_is_sent_the_order_to_go_live() -> None:
    found = decided(SECOND, CHANGED, REPLACING, job(OLD), job(NEW, phase=JobPhase.READY, **STANDBY))
    assert found.actions == [GoLive(NEW, SECOND)]
    assert (found.state.cut_over_at, found.status.phase) == (AT, DetectorPhase.CUTTING_OVER)


@pytest.mark.parametrize("phase", [JobPhase.STARTING, JobPhase.WARMING_UP, JobPhase.STANDBY])
def test_a_standby_that_is_not_ready_is_waited_for(phase: JobPhase) -> None:
    found = decided(SECOND, CHANGED, REPLACING, job(OLD), job(NEW, phase=phase, **STANDBY))
    assert (found.actions, found.state) == ([], REPLACING)


def test_a_standby_that_is_never_ready_is_stopped_and_rolled_back() -> None:
    late = job(NEW, phase=JobPhase.STANDBY, age=TIMEOUTS.start + 1, **STANDBY)
    found = decided(SECOND, CHANGED, REPLACING, job(OLD), late)
    assert found.actions == [Terminate(NEW), RollBack(SECOND, "it was not ready after 300 s")]
    assert decided(SECOND, CHANGED, REPLACING, job(OLD), late, stable=1.0).actions == []


def test_a_successor_that_is_live_replaces_the_previous_instance() -> None:
    found = decided(SECOND, CHANGED, CUTTING_OVER, job(OLD), job(NEW, SECOND))
    assert found.actions == [Terminate(OLD)]
    assert (found.state.live, found.state.successor, found.state.stopping) == (NEW, None, frozenset({OLD}))
    assert found.status.fenced == "r1"


def test_a_previous_instance_that_was_fenced_is_no_crash() -> None:
    waiting = job(NEW, phase=JobPhase.READY, spec=SECOND)
    found = decided(SECOND, CHANGED, CUTTING_OVER, dead(OLD), waiting)
    assert (found.actions, found.status.restarts, found.status.fenced) == ([], 0, "r1")
    assert found.state.successor == NEW


def test_a_successor_that_is_not_live_in_time_is_killed() -> None:
    late = replace(CUTTING_OVER, cut_over_at=AT - TIMEOUTS.cut_over - 1)
    waiting = job(NEW, phase=JobPhase.READY, spec=SECOND)
    assert decided(SECOND, CHANGED, late, job(OLD), waiting).actions == [Kill(NEW)]
    assert decided(SECOND, CHANGED, late, job(OLD), waiting, stable=1.0).actions == []


def test_after_a_failed_cut_over_the_live_job_is_started_again_too() -> None:
    """Its successor may have fenced it."""
    found = decided(SECOND, CHANGED, CUTTING_OVER, job(OLD), dead(NEW, SECOND, phase=JobPhase.READY))
    assert kinds(found.actions) == ["Terminate", "AppendEvent", "RollBack"]
    assert (found.state.live, found.state.successor, found.state.cut_over_at) == (None, None, None)


def test_a_crash_on_standby_leaves_the_live_job_alone() -> None:
    found = decided(SECOND, CHANGED, REPLACING, job(OLD), dead(NEW, SECOND, phase=JobPhase.READY))
    assert kinds(found.actions) == ["AppendEvent", "RollBack"]
    assert found.state.live == OLD


def test_an_unfenced_previous_instance_is_stopped_before_its_successor_goes_live() -> None:
    unfenced = job(OLD, status={"fenced": False})
    ready = job(NEW, phase=JobPhase.READY, **STANDBY)
    found = decided(SECOND, CHANGED, REPLACING, unfenced, ready)
    assert found.actions == [Terminate(OLD)]
    assert found.state.stopping == {OLD}
    stopping = replace(unfenced, stopping_seconds=1.0)
    assert decided(SECOND, CHANGED, found.state, stopping, ready).actions == []
    published = job(OLD, status={"fenced": False, "finished_at": AT}, stopping_seconds=1.0)
    assert decided(SECOND, CHANGED, found.state, published, ready).actions == [GoLive(NEW, SECOND)]


def test_another_spec_during_a_replacement_stops_the_standby_but_not_one_that_is_live() -> None:
    third = SECOND.updated(revision="three", release="r3")
    found = decided(third, CHANGED, REPLACING, job(OLD), job(NEW, phase=JobPhase.STANDBY, **STANDBY))
    assert found.actions[0] == Terminate(NEW)
    found = decided(third, CHANGED, CUTTING_OVER, job(OLD), job(NEW, SECOND))
    assert (found.actions[0], found.state.live) == (Terminate(OLD), NEW)


def test_going_back_to_the_release_that_is_live_stops_the_standby() -> None:
    back = FIRST.updated(revision="three")
    standby = job(NEW, phase=JobPhase.STANDBY, **STANDBY)
    assert Terminate(NEW) in decided(back, CHANGED, REPLACING, job(OLD, ordered=back), standby).actions


# rebuild


REBUILD = SECOND.updated(state="rebuild")


def test_state_is_rebuilt_by_a_standby_even_if_no_job_is_live() -> None:
    first = FIRST.updated(state="rebuild")
    found = decided(first, DeploymentStatus(detector="spotter"), ReplicaState())
    assert found.actions == [Start(first, standby=True, phase=DetectorPhase.STANDBY)]


def test_the_previous_release_is_restarted_during_a_rebuild_and_its_exits_do_not_count() -> None:
    standby = job(NEW, REBUILD, JobPhase.STANDBY, standby=True)
    found = decided(REBUILD, CHANGED, REPLACING, dead(OLD), standby)
    assert found.actions[1:] == [Start(FIRST, of_previous=True)]
    assert (found.state.restarts, len(found.state.previous_restarts.health.exits)) == (StartBackoff(), 1)
    assert RollBack not in map(type, found.actions)


def test_a_rebuild_may_take_long_while_it_makes_progress() -> None:
    slow = job(NEW, REBUILD, JobPhase.STANDBY, standby=True, age=10 * TIMEOUTS.start)
    assert decided(REBUILD, CHANGED, REPLACING, job(OLD), slow).actions == []
    stuck = job(NEW, REBUILD, JobPhase.STANDBY, standby=True, status={"last_progress_at": AT - 2 * TIMEOUTS.hung})
    assert kinds(decided(REBUILD, CHANGED, REPLACING, job(OLD), stuck).actions) == ["Terminate", "RollBack"]


# goals and stops


@pytest.mark.parametrize(
    ("goal", "phase"), [(Goal.PAUSED, DetectorPhase.PAUSED), (Goal.RETIRED, DetectorPhase.RETIRED)]
)
def test_a_goal_without_jobs_is_reached_once_all_have_ended(goal: Goal, phase: DetectorPhase) -> None:
    stopped = FIRST.updated(revision="two", goal=goal)
    found = decided(stopped, RUNNING, LIVE, job(OLD))
    assert (found.actions, found.status.phase) == ([Terminate(OLD)], DetectorPhase.RUNNING)
    found = decided(stopped, found.status, found.state, dead(OLD, stopping_seconds=1.0))
    assert (found.actions, found.status.phase, found.status.pid) == ([], phase, None)


def test_a_job_that_does_not_stop_is_killed() -> None:
    stopped = FIRST.updated(revision="two", goal=Goal.PAUSED)
    deaf = job(OLD, stopping_seconds=TIMEOUTS.stop + 1)
    assert decided(stopped, RUNNING, ReplicaState(stopping=frozenset({OLD})), deaf).actions == [Kill(OLD)]


# jobs of an earlier agent


def test_a_live_job_is_adopted_and_granted_its_time() -> None:
    hangs = job(OLD, status={"last_progress_at": AT - 2 * TIMEOUTS.hung})
    found = decided(FIRST, RUNNING, ReplicaState(), hangs)
    assert found.actions == [AppendEvent("adopted", OLD)]
    assert (found.state.live, found.state.unsettled_at) == (OLD, AT)


def test_a_job_that_is_not_live_yet_is_adopted_as_the_live_one() -> None:
    assert decided(FIRST, RUNNING, ReplicaState(), job(OLD, phase=JobPhase.STARTING)).state.live == OLD


def test_a_standby_and_a_successor_with_the_order_to_go_live_are_adopted() -> None:
    standby = job(NEW, phase=JobPhase.STANDBY, **STANDBY)
    found = decided(SECOND, CHANGED, ReplicaState(), job(OLD), standby)
    assert (found.state.live, found.state.successor, found.state.cut_over_at) == (OLD, NEW, None)
    ordered = job(NEW, phase=JobPhase.READY, spec=SECOND)
    found = decided(SECOND, CHANGED, ReplicaState(), job(OLD), ordered)
    assert (found.state.live, found.state.successor, found.state.cut_over_at) == (OLD, NEW, AT)


def test_of_two_live_jobs_the_newer_generation_stays() -> None:
    found = decided(SECOND, CHANGED, ReplicaState(), job(OLD), job(NEW, SECOND))
    assert (found.state.live, found.state.stopping) == (NEW, frozenset({OLD}))
    assert Terminate(OLD) in found.actions


def test_a_job_that_ended_while_no_agent_ran_is_reported() -> None:
    found = decided(FIRST, RUNNING, ReplicaState(), dead(OLD))
    assert kinds(found.actions) == ["AppendEvent"]
    assert (found.status.restarts, found.state.restarts.health.exits) == (1, ())


def test_old_folders_of_jobs_mean_nothing() -> None:
    ended = RUNNING.model_copy(update={"pid": None})
    assert kinds(decided(FIRST, ended, ReplicaState(), dead(OLD)).actions) == ["Start"]


def test_raising_the_priority_comes_with_the_report_alone() -> None:
    assert RaisePriority(OLD) not in decided(FIRST, RUNNING, LIVE, job(OLD)).actions


# shared hosts


def on_host(spec: DeploymentSpec = FIRST, **view: Any) -> JobView:
    """A job on host h1 that has ended."""
    ended = job(OLD, spec, alive=False, **view)
    return replace(ended, record=msgspec.structs.replace(ended.record, spark_host="h1"))


HOST_ENDED: dict[str, Any] = {"exit_code": 1, "last_error": "Spark's JVM has ended", "host_ended": True}


def test_the_end_of_its_host_is_no_crash_of_a_job() -> None:
    found = decided(FIRST, RUNNING, LIVE, on_host(**HOST_ENDED))
    assert found.status.reason == "exited because its Spark host h1 has ended"
    assert (found.status.phase, found.status.restarts) == (DetectorPhase.WAITING, 0)
    assert found.state.restarts.health.exits == ()
    assert kinds(found.actions) == ["AppendEvent"]


def test_a_job_that_notices_the_end_of_its_host_before_the_agent_does_has_not_crashed() -> None:
    found = decided(FIRST, RUNNING, LIVE, on_host(exit_code=HOST_GONE, last_error="the JVM has ended"))
    assert found.status.reason == "exited because it has lost its Spark host h1: the JVM has ended"
    assert (found.status.restarts, found.state.restarts.health.exits) == (0, ())
    alone = decided(FIRST, RUNNING, LIVE, job(OLD, alive=False, exit_code=HOST_GONE))
    assert (alone.status.restarts, alone.state.restarts.health.exits) == (1, (AT,))


def test_after_the_end_of_its_host_a_job_does_not_wait_for_the_backoff_of_earlier_crashes() -> None:
    restarts = StartBackoff()
    for minutes in range(10, 2, -1):
        restarts = restarts.exited(AT - 60 * minutes, counts=True)
    found = decided(FIRST, RUNNING, replace(LIVE, restarts=restarts), on_host(**HOST_ENDED))
    assert found.state.restarts.next_start_at == AT + NO_BROKER_SECONDS


def test_a_change_on_trial_is_not_rolled_back_for_what_follows_from_the_end_of_a_host() -> None:
    watched = CHANGED.model_copy(update={"outcome": ChangeOutcome.WATCHED})
    late = job(OLD, SECOND, status={"last_progress_at": AT - 100})
    assert "RollBack" in kinds(decided(SECOND, watched, LIVE, late).actions)
    ended = decided(SECOND, watched, LIVE, on_host(SECOND, **HOST_ENDED))
    assert ended.status.outcome is ChangeOutcome.WATCHED
    again = decided(SECOND, ended.status, replace(ended.state, live=OLD), late)
    assert ("RollBack" in kinds(again.actions), again.status.outcome) == (False, ChangeOutcome.WATCHED)
    assert again.state.watch_started_at == AT, "it is watched for as long as any other"


@pytest.mark.parametrize(("seconds", "rolls_back"), [(10.0, False), (TIMEOUTS.start + 1, True)])
def test_a_start_without_a_host_is_no_crash_and_given_up_once_it_takes_too_long(
    seconds: float, rolls_back: bool
) -> None:
    failed = FailedStart(of_previous=False, replaces=True, error="no host is ready", no_host=True)
    state = replace(LIVE, watch_started_at=AT - seconds)
    found = decided(SECOND, CHANGED, state, job(OLD), failed_start=failed)
    assert (RollBack(SECOND, "no host is ready") in found.actions) is rolls_back
    assert (found.status.reason, found.state.restarts.health.exits) == ("no host is ready", ())
    assert found.state.restarts.next_start_at == AT + NO_BROKER_SECONDS


def test_a_job_of_a_host_that_runs_still_crashes_by_itself() -> None:
    found = decided(FIRST, RUNNING, LIVE, on_host(exit_code=1, last_error="it is broken"))
    assert found.status.restarts == 1
    assert found.state.restarts.health.exits == (AT,)
    assert found.state.host_troubles.recent == ()


@pytest.mark.parametrize("alone", [True, False])
def test_a_detector_that_was_alone_at_the_second_end_of_a_host_gets_a_jvm_of_its_own(alone: bool) -> None:
    first = decided(FIRST, RUNNING, LIVE, on_host(**HOST_ENDED, alone=False))
    again = replace(LIVE, host_troubles=first.state.host_troubles)
    second = decided(FIRST, RUNNING, again, on_host(**HOST_ENDED, alone=alone))
    assert kinds(second.actions) == (["AppendEvent", "Isolate"] if alone else ["AppendEvent"])
    assert len(second.state.host_troubles.recent) == (0 if alone else 2)


def test_a_detector_that_hung_twice_on_a_host_gets_a_jvm_of_its_own() -> None:
    hung = on_host(exit_code=137, kill_reason="was killed, hung: no batch has ended for 130 s")
    first = decided(FIRST, RUNNING, LIVE, hung)
    assert "Isolate" not in kinds(first.actions)
    second = decided(FIRST, RUNNING, replace(LIVE, host_troubles=first.state.host_troubles), hung)
    [isolate] = [action for action in second.actions if isinstance(action, Isolate)]
    assert isolate.spec == FIRST
    assert "no batch has ended for 130 s" in isolate.reason


def test_a_detector_that_is_isolated_does_not_start_on_a_shared_host_once_more() -> None:
    first = decided(FIRST, RUNNING, LIVE, on_host(**HOST_ENDED, alone=True))
    again = replace(LIVE, host_troubles=first.state.host_troubles)
    second = decided(FIRST, RUNNING, again, on_host(**HOST_ENDED, alone=True))
    assert "Isolate" in kinds(second.actions)
    assert second.state.restarts.next_start_at == AT + ISOLATION_SECONDS
    assert "Start" not in kinds(decided(FIRST, second.status, second.state).actions)
    isolated = FIRST.updated(revision="isolated", isolation=Isolation.OWN)
    assert "Start" in kinds(decided(isolated, second.status, second.state).actions)


def test_a_job_that_hung_in_a_jvm_of_its_own_has_no_trouble_with_hosts() -> None:
    hung = job(OLD, alive=False, exit_code=137, kill_reason="was killed, hung: no batch has ended for 130 s")
    assert decided(FIRST, RUNNING, LIVE, hung).state.host_troubles.recent == ()


def test_a_detector_that_is_isolated_is_not_rolled_back_too() -> None:
    hung = on_host(SECOND, exit_code=137, kill_reason="was killed, hung: no batch has ended for 130 s")
    health = StartBackoff().health
    for _ in range(CRASH_LOOP_EXITS):
        health = health.exited(AT)
    troubled = decided(SECOND, CHANGED, LIVE, hung).state.host_troubles
    state = replace(LIVE, host_troubles=troubled, restarts=StartBackoff(health))
    assert "RollBack" not in kinds(decided(SECOND, CHANGED, state, hung).actions)


def test_a_standby_whose_host_ended_does_not_fail_the_change() -> None:
    standby = job(NEW, phase=JobPhase.STANDBY, **STANDBY, alive=False, **HOST_ENDED)
    found = decided(SECOND, CHANGED, REPLACING, job(OLD), standby)
    assert "RollBack" not in kinds(found.actions)
    assert found.state.successor is None
    [event] = [action for action in found.actions if isinstance(action, AppendEvent)]
    assert (event.what, "its Spark host" in event.detail) == ("exited", True)


def test_the_host_of_the_live_job_is_reported() -> None:
    live = job(OLD)
    live = replace(live, record=msgspec.structs.replace(live.record, spark_host="h1"))
    assert decided(FIRST, RUNNING, LIVE, live).status.spark_host == "h1"
