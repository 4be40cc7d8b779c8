"""A rule's hop: a canonical Avro event in, the Avro alert about it out.

A fifth of the events raises an alert. All of them would mostly measure the writing of alerts, which are rare in
practice; a hundredth would leave too few at 300 events a second for a 99th percentile.
"""

from tests.bench.harness import hop
from tests.bench.harness.row import Goal, Row
from tests.bench.harness.workload import Task

ROWS = (
    Row(
        name="rule-hop",
        title="Rule: Avro event in, Avro alert out; a fifth of the events raises one",
        method=hop.METHOD,
        task=Task("rule", every=5, keys=20_000),
        goals=(
            Goal("p50", "Kafka Streams, at least once", bar=1.5, stretch=1.0),
            Goal("p99", "Kafka Streams, at least once", bar=2.0, stretch=1.0),
            Goal("p50", "Kafka Streams, exactly once", bar=0.3, stretch=0.1),
            Goal("p99", "Kafka Streams, exactly once", bar=0.3, stretch=0.1),
            Goal("p50", "broker round trip", bar=4.0, stretch=2.0),
        ),
    ),
)
