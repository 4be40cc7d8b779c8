"""How many tasks a detector runs at once."""

from typing import Any

import pytest

from lozenge.detector.manifest import Manifest
from lozenge.job.drivers.micro_batch import MicroBatchDriver
from lozenge.job.drivers.realtime import RealtimeDriver
from lozenge.job.lifecycle.job_factory import slots

AGGREGATE = {"kind": "aggregate", "lateness": "10m", "window": "1m"}


def manifest(**declared: Any) -> Manifest:
    return Manifest.model_validate({"kind": "rule", "owner": "tests", "title": "A test", **declared})


@pytest.mark.parametrize("declared", [{}, AGGREGATE, {"kind": "stateful"}], ids=["rule", "aggregate", "fold"])
def test_micro_batches_of_every_kind_run_with_one_task_at_least(declared: dict[str, Any]) -> None:
    assert slots(manifest(**declared), 4) == 1


def test_a_rule_in_real_time_mode_runs_a_task_per_partition() -> None:
    assert slots(manifest(mode="realtime"), 4) == 4


def test_an_aggregate_in_real_time_mode_also_runs_the_tasks_that_count() -> None:
    assert slots(manifest(mode="realtime", **AGGREGATE), 4) > 4


@pytest.mark.parametrize(("mode", "driver"), [("realtime", RealtimeDriver), ("micro-batch", MicroBatchDriver)])
def test_a_mode_and_its_driver_agree_whether_alerts_are_published_ahead(
    mode: str, driver: type[RealtimeDriver] | type[MicroBatchDriver]
) -> None:
    assert manifest(mode=mode).mode.published_ahead is not driver.capabilities.fenced
