"""How cost grows with the number of keys of an aggregate, and with the share of events that raise an alert.

With the number of partitions too: `partitions-64` is `alerts-10` on a platform of its own, of 64 instead of 4.
"""

from tests.bench.harness import backlog
from tests.bench.harness.row import Row
from tests.bench.harness.workload import Task


def _row(name: str, title: str, task: Task, partitions: int = 0) -> Row:
    return Row(name, title, backlog.METHOD, task, quick=False, partitions=partitions)


ROWS = (
    *(
        _row(f"keys-{keys}", f"Aggregate over {keys:,} keys: each update out", Task("aggregate", every=1, keys=keys))
        for keys in (1_000, 10_000, 100_000, 1_000_000)
    ),
    *(
        _row(
            f"alerts-{100 // every}", f"Rule: {100 // every} % of the events raise an alert", Task("rule", every=every)
        )
        for every in (100, 10, 2)
    ),
    _row("partitions-64", "Rule in 64 partitions: 10 % of the events raise an alert", Task("rule", every=10), 64),
)
