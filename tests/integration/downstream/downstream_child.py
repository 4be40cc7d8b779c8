"""Runs the notifier and kills it, as a power cut would, the first time it comes to a named point.

python downstream_child.py POINT        (no POINT: an ordinary notifier)
"""

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from confluent_kafka import Producer

from lozenge.metrics.app_metrics import NotifierMetrics
from lozenge_downstream.__main__ import main
from lozenge_downstream.delivery import outbox_relay
from lozenge_downstream.delivery.stored_deliveries import StoredDeliveries
from lozenge_downstream.pipeline.pipeline import Pipeline
from lozenge_downstream.pipeline.render import Renderer
from lozenge_downstream.service import Notifier
from lozenge_downstream.store.deliveries import Deliveries
from lozenge_downstream.store.positions import Outbox, ReadPositions
from lozenge_downstream.timing import NotifierTiming

QUICK = NotifierTiming(lease_seconds=2.0, session_seconds=2.0)
"""Tests kill notifiers and wait until others have taken over."""


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before(owner: Any, name: str) -> None:
    setattr(owner, name, die)


def after(owner: Any, name: str) -> None:
    original = getattr(owner, name)

    def wrapped(*args: Any, **keywords: Any) -> None:
        original(*args, **keywords)
        die()

    setattr(owner, name, wrapped)


def notifying(what: str, owner: Any, name: str) -> None:
    """At the end of a method that evaluates due cases, if it has notified one of them as `what`."""
    render, evaluate = Renderer.__call__, getattr(owner, name)
    said = set()

    def rendering(self: Any, case: Any, route: Any, status: Any, alerts: Any, *others: Any) -> Any:
        said.add(status.value if alerts or status.value != "updated" else "repeated")
        return render(self, case, route, status, alerts, *others)

    def evaluating(*args: Any) -> Any:
        said.clear()
        result = evaluate(*args)
        if what in said:
            die()
        return result

    setattr(Renderer, "__call__", rendering)  # noqa: B010 (mypy lets nobody assign to a method)
    setattr(owner, name, evaluating)


class DiesBeforeCommit(Producer):
    def commit_transaction(self, *args: Any) -> None:
        self.flush(10)
        die()


class DiesAfterCommit(Producer):
    def commit_transaction(self, *args: Any) -> None:
        super().commit_transaction(*args)
        die()


POINTS: dict[str, Callable[[], None]] = {
    "processed, before the SQL commit": lambda: after(ReadPositions, "move"),
    "processed, after the SQL commit": lambda: after(Notifier, "_process"),
    "published, before the Kafka commit": lambda: setattr(outbox_relay, "Producer", DiesBeforeCommit),
    "published, after the Kafka commit": lambda: setattr(outbox_relay, "Producer", DiesAfterCommit),
    "marked as published, before the SQL commit": lambda: after(Outbox, "published"),
    "marked as published, after the SQL commit": lambda: before(NotifierMetrics, "emitted"),
    "webhook answered, before it is recorded": lambda: before(StoredDeliveries, "record"),
    "webhook recorded, before the SQL commit": lambda: after(Deliveries, "settle"),
}
STATUSES = ("opened", "updated", "repeated", "resolved")
EVALUATIONS: dict[str, Callable[[], None]] = {
    f"{what}, {when} the SQL commit": partial(notifying, what, *method)
    for what in STATUSES
    for when, method in {"before": (Pipeline, "evaluate_due"), "after": (Notifier, "_evaluate_due")}.items()
}
"""What the evaluation of a due case with several alerts notifies."""

if __name__ == "__main__":
    if sys.argv[1:]:
        (POINTS | EVALUATIONS)[sys.argv[1]]()
    sys.exit(main(QUICK))
