"""What runs a detector, by its declared kind and mode, and how many tasks that needs at once."""

from lozenge.contracts import topics
from lozenge.detector.manifest import Manifest
from lozenge.job.drivers.realtime_aggregates import RealtimeAggregateLoop
from lozenge.job.drivers.realtime_rules import RealtimeRuleLoop
from lozenge.job.lifecycle.job_loop import JobLoop
from lozenge.spark.session import MOST_SLOTS


def job_loop_of(declaration: Manifest) -> type[JobLoop]:
    """What runs a detector that is declared so."""
    if not declaration.realtime:
        return JobLoop
    return RealtimeAggregateLoop if declaration.kind == "aggregate" else RealtimeRuleLoop


def slots(declaration: Manifest) -> int:
    """How many tasks must run at once: all of a query's in Real-Time Mode, and they may be more than cores."""
    if not declaration.realtime:
        return 1
    return MOST_SLOTS if declaration.kind == "aggregate" else topics.EVENT_PARTITIONS
