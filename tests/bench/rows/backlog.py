"""Throughput per core of a rule, an aggregate and a fold over a backlog; a fifth of the events raises an alert.

What comes before them makes an event of each raw record. How it compares with the loop is the row's own bar.

The drain is of five times as many, of which one in fifty raises one: its peak of memory shows if that is bounded.
"""

from tests.bench.harness import backlog, normalise
from tests.bench.harness.row import Goal, Row
from tests.bench.harness.system import JOBS
from tests.bench.harness.workload import Task

DRAIN = Row(
    name="drain",
    title="A backlog of five millions, drained by a rule; one event in fifty raises an alert",
    method=backlog.METHOD,
    task=Task("rule", every=50, keys=100_000),
    goals=(Goal("events/s/core", "confluent-kafka loop", bar=1.2, stretch=3.0),),
    times=5,
    quick=False,
)
NORMALISE = Row(
    name="backlog-normalise",
    title="Backlog of raw JSON records: canonical events per second of processor time",
    method=normalise.METHOD,
    task=Task("normalise"),
    goals=(Goal("events/s/core", "confluent-kafka loop, normalising", bar=1.2, stretch=3.0),),
    quick=False,
)
ROWS = (
    NORMALISE,
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
        for kind in JOBS
    ),
    DRAIN,
)
