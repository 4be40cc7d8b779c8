"""A rule's life: start to first alert, recovery from kill -9, and what it takes while nothing comes."""

from tests.bench.harness import life
from tests.bench.harness.row import Goal, Row
from tests.bench.harness.workload import Task

ROWS = (
    Row(
        name="life",
        title="A rule's life: start to first alert, recovery from kill -9, memory and processor time at rest",
        method=life.METHOD,
        task=Task("rule", every=1, keys=1_000),
        goals=(
            Goal("start", "Kafka Streams, at least once", bar=1.0, stretch=0.5),
            Goal("recovery", "Kafka Streams, at least once", bar=2.0, stretch=1.0),
        ),
    ),
)
