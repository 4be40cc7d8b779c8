"""The interface between the loop of a job and its query: a driver for each way in which Spark runs one.

A driver is used by the thread of the loop. What happens in Spark's thread comes to it through a `Handover`.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from queue import Empty, SimpleQueue
from typing import Protocol

from pyspark.sql.streaming import StreamingQuery

from lozenge.errors import DetectorError
from lozenge.job.batch_result import BatchResult, DraftAlert
from lozenge.job.commit.live_committer import LiveCommitter
from lozenge.job.operators.operator import Operator
from lozenge.job.query.poison_search import Ranges
from lozenge.spark.query_progress import StateSize


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a driver can do. `standby`: process events before the job is live. `fenced`: a newer job's claim stops all
    output; else alerts are published ahead of the offsets of their events. `limited`: a batch has a size limit."""

    standby: bool
    fenced: bool
    limited: bool


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A query to start: its operator, the offsets to read from, the trigger, and, of a live job, its committer."""

    operator: Operator
    begins: Mapping[int, int]
    trigger: timedelta
    committer: LiveCommitter | None


class Admission(Enum):
    """What happens with a batch that Spark has planned."""

    PROCESS = "process"
    """It is processed, and its result is accepted."""
    RECOUNT = "recount"
    """Spark counts it again; its output was committed before."""
    ABANDON = "abandon"
    """It is left to the next query."""


@dataclass(frozen=True, slots=True)
class BatchPlanned:
    """Spark has planned batch `number` up to the offsets `ends`, and waits for the answer."""

    number: int
    ends: Mapping[int, int]
    answer: "Future[Admission]" = field(default_factory=Future)


@dataclass(frozen=True, slots=True)
class BatchProcessed:
    """Batch `number` is processed up to the offsets `ends`, and what has to be accepted is `result`.

    `began` is a monotonic time. `uncounted` offsets of it were not counted as begun before. Spark itself has published
    `emitted` alerts; `latencies` are numbers of alerts, each with the seconds that they took. Spark's thread may wait
    for the answer.
    """

    number: int
    ends: Mapping[int, int]
    result: BatchResult
    began: float
    uncounted: int = 0
    emitted: int = 0
    latencies: Sequence[tuple[int, float]] = ()
    answer: "Future[None]" = field(default_factory=Future)


@dataclass(frozen=True, slots=True)
class AlertsDrafted:
    """Alerts to publish before their batch ends."""

    alerts: Sequence[DraftAlert]


@dataclass(frozen=True, slots=True)
class TriggerEnded:
    """A trigger has ended: the number of its events, offsets still to read, and the state, if there is one."""

    events: int
    lag: int
    state: StateSize | None = None


@dataclass(frozen=True, slots=True)
class BatchProgressed:
    """While a batch lasts: offsets still to read, and offsets read since the last poll."""

    lag: int
    read: int


@dataclass(frozen=True, slots=True)
class AtBoundary:
    """The query waits for events, at a batch boundary."""


@dataclass(frozen=True, slots=True)
class QueryFailed:
    """The query has failed with `error`, in batch `number` up to the offsets `ends`, as far as these are known."""

    error: Exception
    number: int = -1
    ends: Mapping[int, int] = field(default_factory=dict)


QueryEvent = BatchPlanned | BatchProcessed | AlertsDrafted | TriggerEnded | BatchProgressed | AtBoundary | QueryFailed


class QueryDriver(Protocol):
    """Runs one query after the other. `start` comes before `poll`; `stop` before the next `start`."""

    @property
    def capabilities(self) -> Capabilities:
        """The same for all queries of the driver."""
        ...

    @property
    def warm(self) -> bool:
        """Whether the code of the running query is compiled."""
        ...

    @property
    def at_boundary(self) -> bool:
        """Whether the running query may be stopped now without work that is done twice."""
        ...

    def warm_up(self, ranges: Ranges, stopped: Callable[[], bool]) -> None:
        """Processes the events of `ranges` and discards the output, until done or `stopped`."""

    def start(self, plan: QueryPlan) -> None:
        """Starts a query."""

    def poll(self, seconds: float) -> Iterator[QueryEvent]:
        """What has happened since the last call, oldest first; waits for at most `seconds`."""
        ...

    def stop(self) -> None:
        """Stops the query, inside a batch too, which is then repeated. Without a query it does nothing."""

    def rest(self) -> Iterator[QueryEvent]:
        """What has still come of the query that was stopped."""
        ...

    def close(self) -> None:
        """Stops the query and ends whatever it holds."""


def await_end(query: StreamingQuery, app: str, seconds: float) -> None:
    """Returns after `seconds`; raises why the query has ended, if it has before: nobody has stopped it."""
    if query.awaitTermination(seconds):  # type: ignore[arg-type]
        raise DetectorError(f"running {app}: its query ended by itself")


class Abandoned(Exception):
    """Raised in Spark's thread: the query is being stopped, and nobody takes its batch any more."""


class Handover:
    """Passes events of other threads to the one that polls, and its answers back."""

    def __init__(self) -> None:
        self._events: SimpleQueue[QueryEvent] = SimpleQueue()
        self._closed = False
        self._pending: Future[Admission] | Future[None] | None = None
        self._lock = threading.Lock()  # of `_closed` and `_pending`

    def put(self, event: QueryEvent) -> None:
        """Passes an event, without an answer."""
        self._events.put(event)

    def admission(self, planned: BatchPlanned) -> Admission:
        """Passes a planned batch and waits for the answer; raises Abandoned."""
        self._expect(planned.answer)
        self.put(planned)
        return planned.answer.result()

    def acceptance(self, processed: BatchProcessed) -> None:
        """Passes a processed batch and returns when it is accepted; raises Abandoned, or why it was refused."""
        self._expect(processed.answer)
        self.put(processed)
        processed.answer.result()

    def take(self, seconds: float) -> QueryEvent | None:
        """The next event; None if there is none within `seconds`."""
        try:
            return self._events.get(timeout=seconds)
        except Empty:
            return None

    def close(self) -> None:
        """From now on nothing is answered but by Abandoned, so no thread waits."""
        with self._lock:
            self._closed = True
            if self._pending is not None and not self._pending.done():
                self._pending.set_exception(Abandoned())

    def _expect(self, answer: "Future[Admission] | Future[None]") -> None:
        with self._lock:
            if self._closed:
                raise Abandoned
            self._pending = answer
