"""The detectors of a draining host move one at a time, and never during another change."""

from typing import Any

import pytest

from lozenge_deploy.control.records import ChangeOutcome, DeploymentSpec, DeploymentStatus, DetectorPhase, Goal
from lozenge_deploy.hosts.drain import MOVE, moved, next_to_move

DRAINING = {"h1": "it is old"}


def deployed(
    name: str = "a", host: str = "h1", *, spec: Any = None, **status: Any
) -> tuple[DeploymentSpec, DeploymentStatus]:
    wanted = DeploymentSpec(detector=name, revision="one", release="r1", **(spec or {}))
    fields = {
        "revision": "one",
        "outcome": ChangeOutcome.DONE,
        "phase": DetectorPhase.RUNNING,
        "spark_host": host,
    } | status
    return wanted, DeploymentStatus(detector=name, **fields)


def test_a_detector_on_a_draining_host_moves() -> None:
    found = next_to_move([deployed("a", "h2"), deployed("b"), deployed("c")], DRAINING)
    assert found is not None
    assert (found[0].detector, found[1]) == ("b", "it is old")


@pytest.mark.parametrize(
    "unfit",
    [
        deployed(host="h2"),
        deployed(host=""),
        deployed(spec={"goal": Goal.PAUSED}),
        deployed(outcome=ChangeOutcome.WATCHED),
        deployed(revision="another"),
        deployed(phase=DetectorPhase.CIRCUIT_OPEN),
        deployed(spec={"what": MOVE}, outcome=ChangeOutcome.FAILED),
    ],
)
def test_one_elsewhere_one_that_is_changed_and_one_that_could_not_move_stay(unfit: Any) -> None:
    assert next_to_move([unfit], DRAINING) is None


@pytest.mark.parametrize("outcome", [ChangeOutcome.WORKING, ChangeOutcome.WATCHED])
def test_the_next_one_waits_until_the_last_one_has_moved(outcome: ChangeOutcome) -> None:
    moving = deployed("b", "h2", spec={"what": MOVE}, outcome=outcome)
    assert next_to_move([deployed("a"), moving], DRAINING) is None
    assert next_to_move([moving, deployed("c")], DRAINING) is None
    assert next_to_move([deployed("a"), deployed("b", "h2", spec={"what": MOVE})], DRAINING) is not None


def test_one_of_several_instances_is_enough() -> None:
    first, second = (deployed("a", host)[1] for host in ("h2", "h1"))
    both = first.model_copy(update={"instances": [first, second]})
    assert next_to_move([(deployed("a", spec={"instances": 2})[0], both)], DRAINING) is not None


def test_a_move_is_a_restart_with_the_state_kept() -> None:
    before = deployed(spec={"state": "rebuild", "restart": 4, "settings": {"limit": 7}})[0]
    after = moved(before, "two", "it is old")
    assert (after.restart, after.state, after.revision, after.what, after.by) == (5, "keep", "two", MOVE, "agent")
    assert (after.message, after.settings, after.release) == ("it is old", {"limit": 7}, "r1")
    assert after.process != before.process
