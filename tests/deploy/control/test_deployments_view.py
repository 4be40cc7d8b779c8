"""The view of a deployed detector, from its spec and from what its agent observed."""

from datetime import UTC, datetime
from typing import Any

from lozenge_deploy.control.deployments_view import Deployment
from lozenge_deploy.control.records import ChangeOutcome, DeploymentSpec, DeploymentStatus, DetectorPhase, Goal


def member(goal: Goal = Goal.RUNNING, what: str = "deploy", **observed: Any) -> Deployment:
    spec = DeploymentSpec(detector="spotter", revision="b", release="r8", goal=goal, what=what)
    return Deployment(spec, DeploymentStatus(detector="spotter", **observed) if observed else None)


def test_without_an_agent_it_is_pending_and_says_how_to_start_one() -> None:
    found = member()
    assert found.phase == "pending"
    assert found.problem is not None
    assert "`lozenge up`" in found.problem[1]


def test_a_healthy_detector_has_no_problem() -> None:
    assert member(phase=DetectorPhase.RUNNING, outcome=ChangeOutcome.DONE).problem is None
    assert member(phase=DetectorPhase.CUTTING_OVER).phase == "cutting over"


def test_a_waiting_detector_says_why_and_what_to_do_next() -> None:
    found = member(phase=DetectorPhase.WAITING, reason="ended with code 1: no such column")
    assert found.phase == "waiting"
    assert found.problem == (
        "ended with code 1: no such column",
        "`lozenge logs spotter --level error`, then `lozenge history spotter`",
    )


def test_an_open_circuit_says_that_nothing_is_lost_and_both_ways_on() -> None:
    found = member(phase=DetectorPhase.CIRCUIT_OPEN, outcome=ChangeOutcome.DONE, reason="it raises on 10 of 10 records")
    assert found.problem is not None
    why, then = found.problem
    assert (found.phase, why) == ("circuit open", "it raises on 10 of 10 records")
    assert "nothing is lost" in then
    assert "`lozenge deploy spotter`" in then
    assert "`lozenge offsets spotter --to ...`" in then


def test_the_replaced_release_is_named_with_time_and_offsets() -> None:
    at = datetime(2026, 11, 21, 14, 2, tzinfo=UTC)
    assert (
        member(fenced="r7", fenced_at=at, fenced_from={1: 880, 0: 9120}).fenced == "r7 fenced 14:02 UTC at 0:9120 1:880"
    )
    assert member(fenced="r7", fenced_at=at, release="r7").fenced is None, "it is back"
    assert member(fenced="", since={0: 1}).fenced is None
    assert member().fenced is None


def test_only_a_retired_detector_is_retired() -> None:
    assert member(Goal.RETIRED).retired
    assert not member(Goal.PAUSED).retired
