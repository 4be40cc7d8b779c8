"""Which loop runs a detector, by its declared kind and mode, and how many tasks it runs at once."""

from lozenge.detector.manifest import Manifest
from lozenge.job.drivers.realtime_aggregates import RealtimeAggregateLoop
from lozenge.job.drivers.realtime_rules import RealtimeRuleLoop
from lozenge.job.lifecycle.job_loop import JobLoop
from lozenge.spark.conf import most_slots


def job_loop_of(manifest: Manifest) -> type[JobLoop]:
    """The class that runs a detector with this manifest."""
    if not manifest.realtime:
        return JobLoop
    return RealtimeAggregateLoop if manifest.kind == "aggregate" else RealtimeRuleLoop


def slots(manifest: Manifest, partitions: int) -> int:
    """How many tasks run at once: in Real-Time Mode all of a query's tasks, which may be more than the cores."""
    if not manifest.realtime:
        return 1
    return most_slots(partitions) if manifest.kind == "aggregate" else partitions
