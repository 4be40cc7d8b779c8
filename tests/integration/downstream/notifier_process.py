"""Notifiers as processes. One may be killed, as by a power cut, the first time that it comes to a named point.

Each is forked from a process that has imported all that a notifier needs, so that a start costs no imports.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from lozenge.kafka import topic_admin
from lozenge.metrics.app_metrics import NotifierMetrics
from lozenge.process.shutdown import end
from lozenge_downstream.__main__ import main
from lozenge_downstream.delivery import outbox_relay
from lozenge_downstream.delivery.stored_deliveries import StoredDeliveries
from lozenge_downstream.pipeline.pipeline import Pipeline
from lozenge_downstream.pipeline.render import Renderer
from lozenge_downstream.service import Notifier
from lozenge_downstream.store.deliveries import Deliveries
from lozenge_downstream.store.positions import Outbox, ReadPositions
from lozenge_downstream.timing import NotifierTiming

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([__name__])
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

    def rendering(self: Any, case: Any, route: Any, status: Any, alerts: Any, *others: Any, **source: Any) -> Any:
        said.add(status.value if alerts or status.value != "updated" else "repeated")
        return render(self, case, route, status, alerts, *others, **source)

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
IMPATIENCE: dict[str, Callable[[], None]] = {
    "a broker that does not answer is given up": lambda: setattr(
        topic_admin.partitions, "__kwdefaults__", {"timeout": 0.5}
    )
}


class NotifierProcess:
    """A notifier with this environment, which runs from the beginning."""

    def __init__(self, environment: Mapping[str, str], errors: Path, point: str = "") -> None:
        """`errors` is the file for its standard error."""
        self._errors = errors
        self._process = _FORKS.Process(target=_run, args=(dict(environment), errors, point), daemon=True)
        self._process.start()

    @property
    def exit_code(self) -> int | None:
        """None while it runs, the negative number of a signal that ended it."""
        return self._process.exitcode

    @property
    def errors(self) -> str:
        """What it has written to its standard error."""
        return self._errors.read_text()

    def ends(self, seconds: float) -> int | None:
        """Waits until it has ended; returns its exit code."""
        self._process.join(seconds)
        return self.exit_code

    def stop(self) -> None:
        """Requests it to stop."""
        self._process.terminate()

    def kill(self) -> None:
        """Kills it, and waits for its end."""
        self._process.kill()
        self._process.join()


def _run(environment: dict[str, str], errors: Path, point: str) -> None:
    os.environ.clear()
    os.environ.update(environment)
    with errors.open("w") as file:
        os.dup2(file.fileno(), 2)
    if point:
        (POINTS | EVALUATIONS | IMPATIENCE)[point]()
    end(main(QUICK))
