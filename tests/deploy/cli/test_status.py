"""What `lozenge status` shows of an app besides its figures."""

from dataclasses import replace

import pytest

from lozenge_deploy.cli.status import _between_commits, _blocked, _dead_letters, _mappings, _refused
from lozenge_deploy.control.deployments_view import Deployment
from lozenge_deploy.control.records import ChangeOutcome, DeploymentSpec, DeploymentStatus, DetectorPhase
from lozenge_deploy.observe.group_lag import GroupLag
from lozenge_deploy.observe.metrics_reader import Reading
from lozenge_deploy.operations.streams.refused_releases import ReleaseRefusal


def reading(dead_share: float) -> Reading:
    return Reading(
        instances=1, records=100, rate=100.0, lag=0, catch_up=0.0, emitted=0, p50=None, p95=None, dead_letters=9,
        dead_share=dead_share, batches=1, cpu_seconds=0.0, cores=0.0, memory_bytes=0, at=1.0, release="",
    )  # fmt: skip


@pytest.mark.parametrize("dead_share", [0.0, 0.1])
def test_some_dead_letters_are_no_trouble(dead_share: float) -> None:
    assert _dead_letters("upstream", reading(dead_share), None) == {}


def test_many_dead_letters_are_shown_with_the_next_step() -> None:
    assert _dead_letters("upstream", reading(0.4), None) == {
        "reason": "40 % of its newest input becomes dead letters",
        "next": "`lozenge dlq ls upstream` shows the reasons",
    }


def test_the_reason_of_the_agent_comes_first() -> None:
    spec = DeploymentSpec(detector="spotter", revision="one", release="r1")
    status = DeploymentStatus(
        detector="spotter",
        phase=DetectorPhase.CIRCUIT_OPEN,
        outcome=ChangeOutcome.DONE,
        reason="it raises on everything",
    )
    assert _dead_letters("spotter", reading(0.4), Deployment(spec, status)) == {}


def test_a_mapping_that_is_not_in_force_is_named_with_the_next_step() -> None:
    assert _mappings("upstream", reading(0.0)) == {}
    found = _mappings("upstream", replace(reading(0.0), refused_mappings=("wallet",)))
    assert found["reason"] == "not in force is the mapping of wallet; the raw records of its topic wait"
    assert "`lozenge logs upstream --level error`" in found["next"]


def test_a_release_of_its_stream_that_upstream_refuses_is_its_reason() -> None:
    refused = {"upstream": ReleaseRefusal("r3 of the stream auth is refused", "fix the folder")}
    expected = {"reason": "r3 of the stream auth is refused", "next": "fix the folder"}
    assert (_refused("upstream", refused), _refused("spotter", refused)) == (expected, {})


@pytest.mark.parametrize(
    ("where", "problem", "following"),
    [
        (
            GroupLag(None, 60, 0.0, False, lost=60),
            "60 records were deleted before they were processed",
            "`lozenge offsets upstream --earliest`",
        ),
        (
            GroupLag(None, 5, 0.0, False, blocked={("AUTH-JSON", 0): 5}),
            "5 offsets wait behind an open transaction in AUTH-JSON 0",
            "`kafka-transactions.sh list`",
        ),
    ],
)
def test_what_keeps_an_app_from_its_input_is_shown_unless_it_has_another_reason(
    where: GroupLag, problem: str, following: str
) -> None:
    found = _blocked({"app": "upstream", "reason": None}, where)
    assert (found["reason"], following in found["next"]) == (problem, True)
    assert _blocked({"app": "upstream", "reason": "it raises"}, where) == {}
    assert _blocked({"app": "upstream", "reason": None}, None) == {}


def test_a_lag_that_grows_between_the_commits_of_a_sink_is_no_trouble() -> None:
    assert _between_commits("sink-archive") == {"lag_grows": False, "catch_up_seconds": None}
    assert _between_commits("large_amount") == {}
