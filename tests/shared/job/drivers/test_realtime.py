"""A query in Real-Time Mode: what is published before what is committed, and how it ends."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from lozenge.errors import BrokerUnavailable, DetectorError, Flood
from lozenge.job.batch_result import BatchResult, DraftAlert, FailedRecord
from lozenge.job.drivers import realtime
from lozenge.job.drivers.driver import (
    AlertsDrafted,
    AtBoundary,
    BatchProcessed,
    BatchProgressed,
    QueryEvent,
    QueryFailed,
    QueryPlan,
    TriggerEnded,
)
from lozenge.job.drivers.realtime import EndedBatch, RealtimeDriver, RealtimeRows
from lozenge.spark.internals import queries
from lozenge.spark.live_lag import LiveProgress
from tests.shared.job.drivers.scripted import (
    IDENTITY,
    KAFKA,
    NO_SESSION,
    ScriptedCheckpoint,
    ScriptedQuery,
    ScriptedWriter,
    connect,
    draft,
)

BEGINS = {0: 5, 1: 5}
ROWS: Any = object()
WARM_UP_ROWS: Any = object()


class Publisher:
    """Drafts the alerts of `soon` at the next poll, and those of `late` when a batch ends."""

    def __init__(self, calls: list[str]) -> None:
        self._calls = calls
        self.soon: list[DraftAlert] = []
        self.late: list[DraftAlert] = []
        self.error: Exception | None = None
        self.batch = EndedBatch()

    def begin(self, plan: QueryPlan) -> RealtimeRows:
        self._calls.append("skip published")
        return RealtimeRows(ROWS, {"kafka.acks": "all"})

    def warm_up_rows(self, operator: object) -> Any:
        return WARM_UP_ROWS

    def poll(self, seconds: float) -> Iterator[AlertsDrafted]:
        if self.error is not None:
            raise self.error
        yield from self._drafted(self.soon)

    def rest(self) -> Iterator[AlertsDrafted]:
        yield from self._drafted(self.late)

    def has_changes(self, ends: Mapping[int, int], committed: Mapping[int, int]) -> bool:
        return ends != committed

    def ended(self, trigger: object) -> EndedBatch:
        return self.batch

    def stopped(self) -> None:
        self._calls.append("publishes no more")

    def close(self) -> None:
        self._calls.append("closed")

    def _drafted(self, drafts: list[DraftAlert]) -> Iterator[AlertsDrafted]:
        if drafts:
            yield AlertsDrafted([*drafts])
        drafts.clear()


class Lag:
    """The polls of a query have found `counted` offsets as read."""

    def __init__(self) -> None:
        self.counted = 0

    def not_yet_counted(self, offsets: int) -> int:
        return offsets - self.counted


class Job:
    """A driver, its query and what it was asked, in order."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.query, self.publisher, self.lag = ScriptedQuery(), Publisher(self.calls), Lag()
        self.writer = ScriptedWriter(self.query)
        self.committer: Any = SimpleNamespace(offsets=dict(BEGINS))
        self.reports: list[Callable[[LiveProgress], None]] = []
        self.written: list[tuple[object, Mapping[str, str], str]] = []
        self.short = 0
        patch.setattr(realtime, "LiveLag", lambda *_: self.lag)
        patch.setattr(realtime, "polling", self._polling)
        patch.setattr(realtime, "realtime_writer", self._writer)
        patch.setattr(realtime, "bounds", lambda *_: {0: (0, 50), 1: (0, 60), 2: (0, 70)})
        patch.setattr(realtime, "discarding", self._discarding)
        patch.setattr(queries, "can_change_batch_duration", lambda _: True)
        self.driver = self.made(0)

    def made(self, short_batches: int) -> RealtimeDriver:
        group: Any = SimpleNamespace(ends=lambda committed: None)
        builder: Any = SimpleNamespace(operator=lambda *_: None)
        checkpoint: Any = ScriptedCheckpoint()
        publisher: Any = self.publisher
        return RealtimeDriver(IDENTITY, KAFKA, NO_SESSION, group, builder, checkpoint, publisher, short_batches)

    def start(self) -> "Job":
        no_operator: Any = None
        self.driver.start(QueryPlan(no_operator, BEGINS, timedelta(minutes=1), self.committer))
        return self

    def again(self) -> "Job":
        """Stops, and starts another query."""
        self.driver.stop()
        self.query = ScriptedQuery()
        return self.start()

    def poll(self) -> list[QueryEvent]:
        return list(self.driver.poll(0))

    def _writer(self, rows: object, options: Mapping[str, str], duration: str) -> ScriptedWriter:
        self.calls.append("start")
        self.writer = ScriptedWriter(self.query)
        self.written.append((rows, options, duration))
        return self.writer

    @contextmanager
    def _polling(self, lag: object, ends: object, report: Callable[[LiveProgress], None]) -> Iterator[None]:
        self.reports.append(report)
        yield
        self.calls.append("polls no more")

    @contextmanager
    def _discarding(self, rows: object, duration: str) -> Iterator[ScriptedQuery]:
        assert rows is WARM_UP_ROWS
        yield self.query
        self.query.stop()


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Job:
    connect(monkeypatch)
    return Job(monkeypatch)


def test_what_was_published_before_is_known_before_the_query_starts(job: Job) -> None:
    job.start()
    assert job.calls == ["skip published", "start"]


def test_a_query_has_the_name_and_checkpoint_of_its_job_and_writes_what_the_publisher_gives(job: Job) -> None:
    job.start()
    assert job.writer.options == {"name": "spotter", "checkpointLocation": "/checkpoint"}
    assert job.written == [(ROWS, {"kafka.acks": "all"}, "60000 milliseconds")]


def test_alerts_come_while_the_batch_lasts(job: Job) -> None:
    job.start().publisher.soon.append(draft(5))
    assert job.poll() == [AlertsDrafted([draft(5)])]


def test_a_batch_is_committed_after_the_last_of_its_alerts(job: Job) -> None:
    job.start().publisher.late.append(draft(7))
    job.query.trigger(0, {0: 8, 1: 5}, rows=3, behind=2)
    drafted, processed, ended = job.poll()
    assert drafted == AlertsDrafted([draft(7)])
    assert isinstance(processed, BatchProcessed)
    assert (processed.number, processed.ends) == (0, {0: 8, 1: 5})
    assert ended == TriggerEnded(3, 2)


def test_a_batch_has_what_the_publisher_leaves_to_commit(job: Job) -> None:
    failures = BatchResult([], [FailedRecord(0, 6, ValueError("no event"))])
    job.start().publisher.batch = EndedBatch(failures, emitted=4, latencies=[(4, 0.01)])
    job.query.trigger(0, {0: 8, 1: 5})
    [processed] = [event for event in job.poll() if isinstance(event, BatchProcessed)]
    assert (processed.result, processed.emitted, processed.latencies) == (failures, 4, [(4, 0.01)])


def test_a_batch_that_changes_nothing_is_not_committed(job: Job) -> None:
    job.start().query.trigger(0, BEGINS, rows=0)
    assert job.poll() == [TriggerEnded(0, 0)]


def test_a_batch_counts_the_offsets_that_no_poll_has_counted(job: Job) -> None:
    job.start().lag.counted = 2
    job.query.trigger(0, {0: 8, 1: 6})
    job.query.trigger(1, {0: 10, 1: 7})
    uncounted = [event.uncounted for event in job.poll() if isinstance(event, BatchProcessed)]
    assert uncounted == [(3 + 1) - 2, (2 + 1) - 2], "of its own offsets alone"


def test_progress_within_a_batch_is_reported_from_another_thread(job: Job) -> None:
    job.start().reports[0](LiveProgress(12, 3))
    assert job.poll() == [BatchProgressed(12, 3)]


def test_the_progress_of_a_stopped_query_is_not_that_of_the_next_one(job: Job) -> None:
    job.start().reports[0](LiveProgress(12, 3))
    assert job.again().poll() == []


def test_a_query_that_waits_is_at_a_boundary(job: Job) -> None:
    job.start().query.waits = True
    assert job.poll() == [AtBoundary()]


@pytest.mark.parametrize("error", [RuntimeError("a task failed"), Flood("too many rows fail")])
def test_a_query_that_failed_publishes_nothing_more_and_names_the_offsets_among_which_it_failed(
    error: Exception, job: Job
) -> None:
    job.start()
    if isinstance(error, Flood):
        job.publisher.error = error
    else:
        job.query.error = error
    job.calls.clear()
    [failed] = job.poll()
    assert failed == QueryFailed(error, ends={0: 50, 1: 60}), "up to the end of each partition that it reads"
    assert job.calls == ["publishes no more"]


def test_a_query_that_ends_by_itself_has_failed(job: Job) -> None:
    job.start().query.ended = True
    [failed] = job.poll()
    assert isinstance(failed, QueryFailed)
    assert isinstance(failed.error, DetectorError)
    assert "its query ended by itself" in str(failed.error)


def test_a_failed_query_of_which_the_broker_has_no_end_leaves_no_event(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise BrokerUnavailable("nobody answers")

    monkeypatch.setattr(realtime, "bounds", away)
    job.start().query.error = RuntimeError("a task failed")
    with pytest.raises(BrokerUnavailable):
        job.poll()


def test_a_stopped_query_publishes_nothing_more_once_it_has_ended(job: Job) -> None:
    job.start().query.stops.append(lambda: job.calls.append("stop"))
    job.driver.stop()
    assert job.calls[2:] == ["polls no more", "stop", "publishes no more"]
    job.driver.stop()
    assert job.calls.count("stop") == 1


def test_a_query_that_does_not_stop_publishes_nothing_more_all_the_same(job: Job) -> None:
    def gone() -> None:
        raise RuntimeError("the JVM is gone")

    job.start().query.stops.append(gone)
    with pytest.raises(RuntimeError):
        job.driver.close()
    assert job.calls[-2:] == ["publishes no more", "closed"]


def test_a_batch_that_had_ended_before_the_stop_is_committed(job: Job) -> None:
    job.start().publisher.late.append(draft(7))
    job.query.trigger(0, {0: 8, 1: 5})
    job.driver.stop()
    kinds = [type(event) for event in job.driver.rest()]
    assert kinds == [AlertsDrafted, BatchProcessed, TriggerEnded]


def test_without_a_query_there_is_nothing_to_stop_and_nothing_left(job: Job) -> None:
    job.driver.stop()
    assert list(job.driver.rest()) == []
    assert job.calls == []


def test_a_warm_up_lasts_for_the_short_batches_and_ends_its_query(job: Job) -> None:
    driver = job.made(2)
    asked = 0

    def stopped() -> bool:
        nonlocal asked
        asked += 1
        job.query.trigger(asked, {0: asked})
        return False

    driver.warm_up({0: (0, 10)}, stopped)
    assert not driver.batch_duration.warming_up
    assert (len(job.query.recentProgress), job.query.stopped) == (2, True)


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_a_warm_up_is_cut_short_by_a_stop_or_by_its_time(
    seconds: float, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(realtime, "WARM_UP_SECONDS", seconds)
    job.made(2).warm_up({0: (0, 10)}, lambda: seconds > 0)
    assert job.query.stopped
