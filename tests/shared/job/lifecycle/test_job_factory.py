"""Which loop runs a detector, and how many tasks run at once."""

from typing import Any

import pytest

from lozenge.detector.manifest import Manifest
from lozenge.job.drivers.realtime_aggregates import RealtimeAggregateLoop
from lozenge.job.drivers.realtime_rules import RealtimeRuleLoop
from lozenge.job.lifecycle.job_factory import job_loop_of, slots
from lozenge.job.lifecycle.job_loop import JobLoop

AGGREGATE = {"kind": "aggregate", "lateness": "10m", "window": "1m"}


def manifest(**declared: Any) -> Manifest:
    return Manifest.model_validate({"kind": "rule", "owner": "tests", "title": "A test", **declared})


@pytest.mark.parametrize("declared", [{}, AGGREGATE, {"kind": "stateful"}], ids=["rule", "aggregate", "fold"])
def test_micro_batches_of_every_kind_run_in_one_loop_with_one_task_at_least(declared: dict[str, Any]) -> None:
    assert (job_loop_of(manifest(**declared)), slots(manifest(**declared), 4)) == (JobLoop, 1)


def test_a_rule_in_real_time_mode_runs_a_task_per_partition() -> None:
    declared = manifest(mode="realtime")
    assert (job_loop_of(declared), slots(declared, 4)) == (RealtimeRuleLoop, 4)


def test_an_aggregate_in_real_time_mode_also_runs_the_tasks_that_count() -> None:
    declared = manifest(mode="realtime", **AGGREGATE)
    assert job_loop_of(declared) is RealtimeAggregateLoop
    assert slots(declared, 4) > 4
