"""The whole diamond: raw JSON in, normalised, processed by a rule, and a signed webhook out.

At 300 records a second two cores are full; a thousand would mostly measure how many requests the receiver takes.
"""

from tests.bench.harness import diamond
from tests.bench.harness.row import Goal, Row
from tests.bench.harness.workload import Task

ROWS = (
    Row(
        name="diamond",
        title="Whole diamond: raw JSON in, webhook out; a fifth of the records raises an alert",
        method=diamond.METHOD,
        task=Task("rule", every=5, keys=2_000),
        goals=(Goal("p99", "Quix Streams, three in a chain", bar=2.0, stretch=1.0),),
        rates=(100, 300),
    ),
)
