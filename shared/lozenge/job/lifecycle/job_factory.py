"""What runs a detector, by its declared kind and mode, and how many tasks that needs at once."""

from lozenge.contracts import topics
from lozenge.detector.manifest import Declaration
from lozenge.job.drivers.realtime_aggregates import RealtimeAggregateRunner
from lozenge.job.drivers.realtime_rules import RealtimeRuleRunner
from lozenge.job.lifecycle.job_loop import Runner
from lozenge.spark.session import MOST_SLOTS


def runner_of(declaration: Declaration) -> type[Runner]:
    """What runs a detector that is declared so."""
    if not declaration.realtime:
        return Runner
    return RealtimeAggregateRunner if declaration.kind == "aggregate" else RealtimeRuleRunner


def slots(declaration: Declaration) -> int:
    """How many tasks must run at once: all of a query's in Real-Time Mode, and they may be more than cores."""
    if not declaration.realtime:
        return 1
    return MOST_SLOTS if declaration.kind == "aggregate" else topics.EVENT_PARTITIONS
