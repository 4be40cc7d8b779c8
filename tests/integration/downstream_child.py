"""Runs the notifier and kills it, as a power cut would, the first time it comes to a named point.

python downstream_child.py POINT        (no POINT: an ordinary notifier)
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from confluent_kafka import Producer

from lozenge.metrics import Metrics
from lozenge_downstream import relay
from lozenge_downstream.__main__ import main
from lozenge_downstream.job import Notifier
from lozenge_downstream.lane import Lane
from lozenge_downstream.store.deliveries import Deliveries
from lozenge_downstream.store.offsets import Outbox, Positions


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


class DiesBeforeCommit(Producer):
    def commit_transaction(self, *args: Any) -> None:
        self.flush(10)
        die()


class DiesAfterCommit(Producer):
    def commit_transaction(self, *args: Any) -> None:
        super().commit_transaction(*args)
        die()


POINTS: dict[str, Callable[[], None]] = {
    "decided, before the SQL commit": lambda: after(Positions, "move"),
    "decided, after the SQL commit": lambda: after(Notifier, "_decide"),
    "published, before the Kafka commit": lambda: setattr(relay, "Producer", DiesBeforeCommit),
    "published, after the Kafka commit": lambda: setattr(relay, "Producer", DiesAfterCommit),
    "marked as published, before the SQL commit": lambda: after(Outbox, "published"),
    "marked as published, after the SQL commit": lambda: before(Metrics, "emitted"),
    "webhook answered, before it is noted": lambda: before(Lane, "_written"),
    "webhook noted, before the SQL commit": lambda: after(Deliveries, "settle"),
}

if __name__ == "__main__":
    if sys.argv[1:]:
        POINTS[sys.argv[1]]()
    sys.exit(main())
