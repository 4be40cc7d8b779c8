"""An aggregate's hop: counting by card over 100,000 cards, each new count out as an alert.

Every card has been counted once, and that was committed, before anything is measured: each event updates a count that
is there, and a commit is of what changed since the last one. At 1,000 events a second two cores are full.
"""

from tests.bench.harness import hop
from tests.bench.harness.row import Goal, Row
from tests.bench.harness.workload import Task

ROWS = (
    Row(
        name="aggregate-hop",
        title="Aggregate: count by card over 100,000 cards, each update out",
        method=hop.METHOD,
        task=Task("aggregate", every=1, keys=100_000),
        goals=(Goal("p99", "Kafka Streams, at least once", bar=2.0, stretch=1.0),),
        rates=(300,),
    ),
)
