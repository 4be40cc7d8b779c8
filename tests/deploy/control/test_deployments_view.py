"""What is told of a detector that was deployed, from what is wanted and what its agent observed."""

from datetime import UTC, datetime
from typing import Any

from lozenge_deploy.control.deployments_view import Deployment
from lozenge_deploy.control.records import DeploymentSpec, DeploymentStatus, Goal, Outcome, Phase


def member(goal: Goal = Goal.RUNNING, what: str = "deploy", **observed: Any) -> Deployment:
    desired = DeploymentSpec(detector="spotter", revision="b", release="r8", goal=goal, what=what)
    return Deployment(desired, DeploymentStatus(detector="spotter", **observed) if observed else None)


def test_what_no_agent_has_seen_is_asked_for_and_says_how_to_start_one() -> None:
    found = member()
    assert found.phase == "asked for"
    assert found.trouble is not None
    assert "`lozenge up`" in found.trouble[1]


def test_what_runs_as_it_should_is_no_trouble() -> None:
    assert member(phase=Phase.RUNNING, outcome=Outcome.DONE).trouble is None
    assert member(phase=Phase.TAKING_OVER).phase == "taking over"


def test_what_waits_says_why_and_what_to_do_next() -> None:
    found = member(phase=Phase.WAITING, reason="ended with code 1: no such column")
    assert found.phase == "waiting"
    assert found.trouble == (
        "ended with code 1: no such column",
        "`lozenge logs spotter --level error`, then `lozenge history spotter`",
    )


def test_what_is_parked_says_that_nothing_is_lost_and_both_ways_on() -> None:
    found = member(phase=Phase.PARKED, outcome=Outcome.DONE, reason="it raises on 10 of 10 records")
    assert found.trouble is not None
    why, then = found.trouble
    assert (found.phase, why) == ("parked", "it raises on 10 of 10 records")
    assert "nothing is lost" in then
    assert "`lozenge deploy spotter`" in then
    assert "`lozenge offsets spotter --to ...`" in then


def test_whom_it_relieved_when_and_where_is_told() -> None:
    at = datetime(2026, 11, 21, 14, 2, tzinfo=UTC)
    assert (
        member(fenced="r7", fenced_at=at, fenced_from={1: 880, 0: 9120}).fenced == "r7 fenced 14:02 UTC at 0:9120 1:880"
    )
    assert member(fenced="r7", fenced_at=at, release="r7").fenced is None, "it is back"
    assert member(fenced="", since={0: 1}).fenced is None
    assert member().fenced is None


def test_only_what_is_retired_is_gone() -> None:
    assert member(Goal.RETIRED).gone
    assert not member(Goal.PAUSED).gone
