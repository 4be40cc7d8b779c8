"""The pause of an update, by kind: one release is replaced by the next while events come steadily."""

from tests.bench.harness import update
from tests.bench.harness.row import Row
from tests.bench.harness.workload import Task


def _update(name: str, task: Task) -> Row:
    return Row(
        name=name,
        title=f"Update of a {task.kind} under traffic: the latest alert before it, and while it lasts",
        method=update.METHOD,
        task=task,
        quick=False,
    )


ROWS = (
    _update("update", Task("rule", every=1, keys=1_000)),
    _update("update-aggregate", Task("aggregate", every=1, keys=1_000)),
    _update("update-fold", Task("fold", every=1, keys=10)),
)
