"""What a command says once its change is in force: only what is known."""

import re

import pytest

from lozenge_deploy.cli.wait import _Progress, interruptible
from lozenge_deploy.control.records import DeploymentSpec, DeploymentStatus, Goal


def said(spec: DeploymentSpec, **status: object) -> str:
    observed = DeploymentStatus.model_validate({"detector": "spotter", "generation": 4, **status})
    return re.sub(r"\d+\.\d s", "1.0 s", _Progress().summary(spec, observed))


def test_a_release_that_is_live_is_named_with_what_is_known_of_it() -> None:
    spec = DeploymentSpec(detector="spotter", revision="a", release="r2")
    assert said(spec) == "spotter r2 is live, generation 4 (1.0 s)"
    assert said(spec, release="r3", digest="d1") == "spotter r3 is live, generation 4, settings d1 (1.0 s)"
    assert said(spec, since={"0": 7}) == "spotter r2 is live, generation 4 from 0:7 (1.0 s)"


def test_a_detector_that_is_not_to_run_is_named_with_its_goal() -> None:
    spec = DeploymentSpec(detector="spotter", revision="a", release="r2", goal=Goal.PAUSED)
    assert said(spec, digest="d1") == "spotter is paused (1.0 s)"


def test_ctrl_c_during_the_wait_says_that_the_change_continues_and_where_it_is_seen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(KeyboardInterrupt), interruptible("lozenge status spotter"):
        raise KeyboardInterrupt
    assert "continues: `lozenge status spotter`" in capsys.readouterr().err
