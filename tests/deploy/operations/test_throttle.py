"""How a detector can be throttled, and which of it survives a change of the mode."""

from datetime import timedelta
from typing import Any

import pytest

from lozenge.contracts.detector_kind import DetectorKind
from lozenge.contracts.detector_mode import DetectorMode
from lozenge_deploy.control.records import DeploymentSpec
from lozenge_deploy.operations.throttle import refused, repeats, reset_by_mode, rows
from lozenge_deploy.releases.release import Release
from tests.deploy.releases.test_release import release


def of_mode(mode: str) -> Release:
    trigger = timedelta(minutes=1) if mode == "realtime" else timedelta(seconds=1)
    update = {"mode": DetectorMode(mode), "trigger": trigger}
    return release(declaration=release().declaration.model_copy(update=update))


def present(**fields: Any) -> DeploymentSpec:
    return DeploymentSpec(detector="spotter", revision="a", release="r7", **fields)


@pytest.mark.parametrize("given", [{"max_batch": 500}, {"rate": 50}, {"trigger": "500ms"}, {"trigger": "4999ms"}])
def test_real_time_mode_takes_no_batch_size_and_no_trigger_that_spark_refuses(given: dict[str, Any]) -> None:
    refusal = refused(of_mode("realtime"), given)
    assert refusal is not None
    assert f"setting {next(iter(given))} of spotter" in str(refusal)
    assert refused(of_mode("micro-batch"), given) is None


@pytest.mark.parametrize("given", [{}, {"trigger": "5s"}, {"cores": 2, "rate": None}])
def test_real_time_mode_takes_every_other_throttle(given: dict[str, Any]) -> None:
    assert refused(of_mode("realtime"), given) is None


def test_a_change_of_the_mode_resets_the_throttle_and_the_plan_shows_it() -> None:
    was = present(trigger="500ms", max_batch=7)
    left = reset_by_mode(was, of_mode("micro-batch"), of_mode("realtime"))
    assert was.updated(**left) == present(at=was.at)
    assert rows(was, left, of_mode("realtime")) == [
        {"field": "set trigger", "current": "500ms", "new": "1m"},
        {"field": "set max_batch", "current": 7, "new": 200_000},
    ]


def test_the_throttle_is_kept_while_the_mode_is() -> None:
    was = present(trigger="10s")
    assert reset_by_mode(was, of_mode("realtime"), of_mode("realtime")) == {}
    assert reset_by_mode(None, None, of_mode("realtime")) == {}
    assert rows(None, {}, of_mode("realtime")) == []


@pytest.mark.parametrize(
    ("mode", "guarantee", "set_", "expected"),
    [
        ("micro-batch", "exactly-once", {}, None),
        ("micro-batch", "at-most-once", {}, None),
        ("micro-batch", "at-least-once", {}, "a crash may repeat the alerts of 200000 events at most"),
        ("micro-batch", "at-least-once", {"max_batch": 70}, "a crash may repeat the alerts of 70 events at most"),
        ("realtime", "at-least-once", {}, "a crash may repeat the alerts of the last 1m"),
        ("realtime", "at-least-once", {"trigger": "10s"}, "a crash may repeat the alerts of the last 10s"),
    ],
)
def test_the_most_that_a_crash_repeats_is_named(
    mode: str, guarantee: str, set_: dict[str, Any], expected: str | None
) -> None:
    declared = of_mode(mode).declaration.model_copy(update={"guarantee": guarantee})
    assert repeats(release(declaration=declared), present(**set_)) == expected


@pytest.mark.parametrize(("kind", "repeating"), [(DetectorKind.RULE, True), (DetectorKind.AGGREGATE, False)])
def test_an_aggregate_in_real_time_mode_repeats_nothing(kind: DetectorKind, repeating: bool) -> None:
    spans = {"lateness": timedelta(minutes=10), "window": timedelta(hours=1)} if kind.state_in_checkpoint else {}
    update = {"guarantee": "at-least-once", "kind": kind, **spans}
    declared = of_mode("realtime").declaration.model_copy(update=update)
    assert (repeats(release(declaration=declared), None) is not None) == repeating
