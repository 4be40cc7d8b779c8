"""Throughput per core of a rule, an aggregate and a fold over a backlog; a fifth of the events raises an alert.

The drain is of five times as many, of which one in fifty raises one: its peak of memory shows if that is bounded.
"""

from typing import get_args

from tests.bench.harness import backlog
from tests.bench.harness.row import Goal, Row
from tests.bench.harness.workload import Kind, Task

DRAIN = Row(
    name="drain",
    title="A backlog of five millions, drained by a rule; one event in fifty raises an alert",
    method=backlog.METHOD,
    task=Task("rule", every=50, keys=100_000),
    goals=(Goal("events/s/core", "confluent-kafka loop", bar=1.2, stretch=3.0),),
    times=5,
    quick=False,
)
ROWS = (
    *(
        Row(
            name=f"backlog-{kind}",
            title=f"Backlog of a {kind}: events per second of processor time; a fifth of them raises an alert",
            method=backlog.METHOD,
            task=Task(kind, every=5),
            goals=(
                Goal("events/s/core", "confluent-kafka loop", bar=1.2, stretch=3.0),
                *([Goal("events/s/core", "Quix Streams", bar=1.0, stretch=3.0)] if kind == "fold" else []),
            ),
            laps=10,
        )
        for kind in get_args(Kind)
    ),
    DRAIN,
)
