"""A query of Spark that follows a script, as a driver sees it."""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ParamSpec, TypeVar

import pytest

from lozenge.detector.events import Alert
from lozenge.job.batch_result import BatchResult, DraftAlert
from lozenge.job.identity import Identity
from lozenge.kafka.settings import KafkaSettings
from lozenge.spark.internals import queries
from tests.streams import AUTH

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
KAFKA = KafkaSettings(bootstrap="127.0.0.1:1", partitions=2)
IDENTITY = Identity("spotter", "r2", live=True, key="card", topics=KAFKA.topics, stream=AUTH)
NO_SESSION: Any = None
SECONDS = 10.0
"""The longest that another thread is waited for."""
P = ParamSpec("P")
T = TypeVar("T")


def in_thread(call: Callable[P, T], *args: P.args, **more: P.kwargs) -> "Future[T]":
    """Makes the call in a thread as Spark's; no test waits for that thread in its end."""
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(call(*args, **more))
        except Exception as error:
            result.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return result


def draft(offset: int) -> DraftAlert:
    """An alert of the event at this offset of the first partition."""
    return DraftAlert(Alert(reason="seen"), "card_1", str(offset), AT, AT, (0, offset), (0, offset))


class ScriptedQuery:
    """A streaming query: whether it has `ended` or has an `error`, its triggers, and whether it waits for events."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.ended, self.stopped = False, False
        self.waits, self.in_trigger = False, False
        self.recentProgress: list[Any] = []
        self.stops: list[Callable[[], object]] = []
        """What happens in Spark while the query is stopped."""

    def awaitTermination(self, timeout: float) -> bool:
        if self.error is not None:
            raise self.error
        return self.ended

    def stop(self) -> None:
        for stop in self.stops:
            stop()
        self.stopped = True

    def trigger(
        self,
        number: int,
        ends: Mapping[int, int],
        *,
        rows: int = 1,
        behind: int = 0,
        counts: Mapping[str, Any] | None = None,
        state: Sequence[tuple[int, int]] = (),
    ) -> None:
        """A trigger ends: batch `number` has read `rows` up to `ends`, and the topic's end is `behind` more.

        `state` has the groups and bytes of each store.
        """
        offsets = {IDENTITY.input: {str(p): end for p, end in ends.items()}}
        latest = {IDENTITY.input: {"0": sum(ends.values()) + behind}}
        source = SimpleNamespace(endOffset=json.dumps(offsets), latestOffset=json.dumps(latest))
        self.recentProgress.append(
            SimpleNamespace(
                timestamp=(AT + timedelta(seconds=len(self.recentProgress))).isoformat(),
                numInputRows=rows,
                batchId=number,
                batchDuration=2_000,
                sources=[source],
                stateOperators=[SimpleNamespace(numRowsTotal=groups, memoryUsedBytes=size) for groups, size in state],
                observedMetrics={"published": SimpleNamespace(asDict=lambda: counts)},
            )
        )


def connect(patch: pytest.MonkeyPatch) -> None:
    """From now on Spark's internals are asked of a scripted query."""

    def newest(query: ScriptedQuery) -> str:
        return query.recentProgress[-1].timestamp if query.recentProgress else ""

    patch.setattr(queries, "newest_progress", newest)
    patch.setattr(queries, "is_waiting", lambda query: query.waits)
    patch.setattr(queries, "in_trigger", lambda query: query.in_trigger)
    patch.setattr(queries, "stop", lambda query: query.stop())


class ScriptedWriter:
    """Configures a query as Spark does, and starts it; `options` is how."""

    def __init__(self, query: ScriptedQuery) -> None:
        self._query = query
        self.options: dict[str, Any] = {}
        self.on_batch: Callable[[Any, int], None] = lambda frame, number: None

    def foreachBatch(self, on_batch: Callable[[Any, int], None]) -> "ScriptedWriter":
        self.on_batch = on_batch
        return self

    def outputMode(self, mode: str) -> "ScriptedWriter":
        return self.option("mode", mode)

    def trigger(self, **trigger: str) -> "ScriptedWriter":
        return self.option("trigger", trigger)

    def queryName(self, name: str) -> "ScriptedWriter":
        return self.option("name", name)

    def option(self, name: str, value: object) -> "ScriptedWriter":
        self.options[name] = value
        return self

    def start(self) -> ScriptedQuery:
        return self._query


class ScriptedOperator:
    """Processes each batch to the next of `results`; an exception among them is raised."""

    keys = 0

    def __init__(self, query: ScriptedQuery | None = None, *results: BatchResult | Exception) -> None:
        self.writer = ScriptedWriter(query or ScriptedQuery())
        self._results = list(results)
        self.processed: list[object] = []

    def frame(self) -> Any:
        return SimpleNamespace(writeStream=self.writer)

    def process(self, batch: object) -> BatchResult:
        self.processed.append(batch)
        result = self._results.pop(0) if self._results else BatchResult([])
        if isinstance(result, Exception):
            raise result
        return result


class ScriptedCheckpoint:
    """The offsets that Spark has planned, by batch."""

    folder = Path("/checkpoint")

    def __init__(self, *ends: Mapping[int, int]) -> None:
        self._ends: Sequence[Mapping[int, int]] = ends

    def planned(self, number: int) -> dict[int, int] | None:
        return dict(self._ends[number]) if number < len(self._ends) else None
