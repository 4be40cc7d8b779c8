"""A detector's life: start to first alert, recovery from kill -9, and what it takes while nothing comes.

A rule's is what is required of a release; an aggregate and a fold recover their state. A fold emits no alert for the
first event of a card, so it has few cards: its start would be the time until one came again.
"""

from tests.bench.harness import life
from tests.bench.harness.row import Goal, Row
from tests.bench.harness.workload import Task


def _life(name: str, task: Task, quick: bool = False) -> Row:
    return Row(
        name=name,
        title=f"Life of a {task.kind}: start to first alert, recovery from kill -9, memory and processor time at rest",
        method=life.METHOD,
        task=task,
        goals=(
            Goal("start", "Kafka Streams, at least once", bar=1.0, stretch=0.5),
            Goal("recovery", "Kafka Streams, at least once", bar=2.0, stretch=1.0),
        ),
        quick=quick,
    )


ROWS = (
    _life("life", Task("rule", every=1, keys=1_000), quick=True),
    _life("life-aggregate", Task("aggregate", every=1, keys=1_000)),
    _life("life-fold", Task("fold", every=1, keys=10)),
)
