"""A batch in Spark's thread waits for the loop, and what becomes of one that fails or is not taken any more."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from lozenge.errors import DetectError, DetectorError, Fenced, Flood
from lozenge.job.batch_result import BatchResult, FailedRecord
from lozenge.job.drivers import micro_batch
from lozenge.job.drivers.driver import (
    Abandoned,
    Admission,
    AtBoundary,
    BatchPlanned,
    BatchProcessed,
    QueryEvent,
    QueryFailed,
    QueryPlan,
    TriggerEnded,
)
from lozenge.job.drivers.micro_batch import MicroBatchDriver
from lozenge.spark.query_progress import StateSize
from tests.shared.job.drivers.scripted import (
    SECONDS,
    ScriptedCheckpoint,
    ScriptedOperator,
    ScriptedQuery,
    connect,
    draft,
    in_thread,
)

E = TypeVar("E", bound=QueryEvent)


class Frame:
    """A batch as Spark hands it over; `counted` is how often Spark alone has evaluated it."""

    def __init__(self) -> None:
        self.counted = 0
        self.write = SimpleNamespace(format=lambda sink: SimpleNamespace(mode=lambda mode: self._sink(sink)))

    def toArrow(self) -> "Frame":
        return self

    def _sink(self, sink: str) -> Any:
        assert sink == "noop"
        return SimpleNamespace(save=self._count)

    def _count(self) -> None:
        self.counted += 1


class Job:
    """A driver with its query, whose batches are in threads of their own."""

    def __init__(self, *, counts: bool = True) -> None:
        checkpoint: Any = ScriptedCheckpoint({0: 10}, {0: 20}, {0: 30})
        self.evaluated: list[object] = []
        builder: Any = SimpleNamespace(evaluate=self.evaluated.append)
        self.driver = MicroBatchDriver("spotter", builder, checkpoint, counts=counts)
        self.query, self.operator = ScriptedQuery(), ScriptedOperator()

    def start(self, *results: BatchResult | Exception) -> "Job":
        self.query = ScriptedQuery()
        self.operator = ScriptedOperator(self.query, *results)
        operator: Any = self.operator
        self.driver.start(QueryPlan(operator, {0: 0}, timedelta(seconds=1), None))
        return self

    def batch(self, number: int, frame: Frame | None = None) -> "Future[None]":
        """Spark begins with a batch."""
        return in_thread(self.operator.writer.on_batch, frame or Frame(), number)

    def next(self, kind: type[E]) -> E:
        """The next event, which is of this kind."""
        event = next(self.driver.poll(SECONDS))
        assert isinstance(event, kind), event
        return event

    def process(self, number: int) -> "Future[None]":
        """A whole batch, admitted and accepted."""
        running = self.batch(number)
        self.next(BatchPlanned).answer.set_result(Admission.PROCESS)
        self.next(BatchProcessed).answer.set_result(None)
        return running


@pytest.fixture(autouse=True)
def _spark(monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch)


@pytest.fixture
def job() -> Iterator[Job]:
    job = Job()
    yield job
    job.driver.close()


def failures(number: int) -> BatchResult:
    return BatchResult([], [FailedRecord(0, offset, DetectError("raised")) for offset in range(number)])


def test_a_batch_is_processed_once_it_is_admitted_and_over_once_it_is_accepted(job: Job) -> None:
    frame, result = Frame(), BatchResult([draft(3)])
    running = job.start(result).batch(0, frame)
    planned = job.next(BatchPlanned)
    assert (planned.number, planned.ends, job.operator.processed) == (0, {0: 10}, [])
    planned.answer.set_result(Admission.PROCESS)
    processed = job.next(BatchProcessed)
    assert (processed.number, processed.ends, processed.result) == (0, {0: 10}, result)
    assert job.operator.processed == [frame]
    assert not running.done()
    processed.answer.set_result(None)
    assert running.result(SECONDS) is None


def test_an_abandoned_batch_is_left_to_the_next_query_and_the_query_may_be_stopped(job: Job) -> None:
    running = job.start().batch(0)
    job.query.in_trigger = True
    assert not job.driver.at_boundary
    job.next(BatchPlanned).answer.set_result(Admission.ABANDON)
    running.result(SECONDS)
    assert job.driver.at_boundary
    assert job.operator.processed == []


def test_a_batch_that_was_committed_before_is_counted_by_spark_alone(job: Job) -> None:
    frame = Frame()
    running = job.start(BatchResult([draft(3)])).batch(0, frame)
    job.next(BatchPlanned).answer.set_result(Admission.RECOUNT)
    processed = job.next(BatchProcessed)
    processed.answer.set_result(None)
    running.result(SECONDS)
    assert (frame.counted, processed.result, job.operator.processed) == (1, BatchResult([]), [])


def test_a_batch_that_fails_fails_in_spark_and_comes_with_its_error_and_offsets(job: Job) -> None:
    error = ValueError("not a number")
    running = job.start(error).batch(0)
    job.next(BatchPlanned).answer.set_result(Admission.PROCESS)
    failed = job.next(QueryFailed)
    assert failed.error is error
    assert (failed.number, failed.ends) == (0, {0: 10})
    assert running.exception(SECONDS) is error


def test_a_batch_that_cannot_be_accepted_fails_in_spark_too(job: Job) -> None:
    refusal = Fenced("a newer job has claimed")
    running = job.start().batch(0)
    job.next(BatchPlanned).answer.set_result(Admission.PROCESS)
    job.next(BatchProcessed).answer.set_exception(refusal)
    assert running.exception(SECONDS) is refusal


def test_too_many_failures_in_one_batch_are_a_fault_of_the_detector(job: Job) -> None:
    job.start(BatchResult([]), failures(10)).process(0).result(SECONDS)
    running = job.batch(1)
    job.next(BatchPlanned).answer.set_result(Admission.PROCESS)
    assert isinstance(job.next(QueryFailed).error, Flood), "10 of its 10 records, whatever the batch before had"
    assert isinstance(running.exception(SECONDS), Flood)


def test_a_batch_of_which_spark_has_written_no_offsets_fails(job: Job) -> None:
    running = job.start().batch(7)
    failed = job.next(QueryFailed)
    assert isinstance(failed.error, DetectorError)
    assert "Spark has not written its offsets in /checkpoint" in str(failed.error)
    assert running.exception(SECONDS) is failed.error


def test_stopping_releases_a_batch_that_waits_before_spark_is_waited_for(job: Job) -> None:
    running = job.start().batch(0)
    job.next(BatchPlanned)
    job.query.stops.append(lambda: running.exception(SECONDS))  # Spark ends a query when its batch has ended
    job.driver.stop()
    assert job.query.stopped
    assert isinstance(running.exception(0), Abandoned)


def test_a_processed_batch_that_nobody_accepts_fails_where_spark_counts(job: Job) -> None:
    """Else its checkpoint, from which the next query resumes, would have the batch as done."""
    running = job.start().batch(0)
    job.next(BatchPlanned).answer.set_result(Admission.PROCESS)
    job.next(BatchProcessed)
    job.driver.stop()
    assert isinstance(running.exception(SECONDS), Abandoned)


def test_a_processed_batch_that_nobody_accepts_ends_where_spark_does_not_count() -> None:
    job = Job(counts=False)
    running = job.start().batch(0)
    job.next(BatchPlanned).answer.set_result(Admission.PROCESS)
    job.next(BatchProcessed)
    job.driver.stop()
    assert running.exception(SECONDS) is None
    assert list(job.driver.rest()) == [], "it is no failure of the query"


def test_a_late_batch_of_a_stopped_query_does_not_reach_the_next_one(job: Job) -> None:
    late: Callable[[Any, int], None] = job.start().operator.writer.on_batch
    job.driver.stop()
    job.start()
    assert isinstance(in_thread(late, Frame(), 0).exception(SECONDS), Abandoned)
    assert list(job.driver.poll(0)) == []


def test_an_abandoned_batch_says_nothing_about_the_next_query(job: Job) -> None:
    running = job.start().batch(0)
    job.next(BatchPlanned).answer.set_result(Admission.ABANDON)
    running.result(SECONDS)
    job.driver.stop()
    job.start().query.in_trigger = True
    assert not job.driver.at_boundary


def test_a_driver_without_a_query_is_at_a_boundary_and_stops_nothing(job: Job) -> None:
    assert job.driver.at_boundary
    job.driver.stop()
    job.driver.close()


def test_why_a_query_has_ended_is_an_event(job: Job) -> None:
    error = RuntimeError("the JVM is gone")
    job.start().query.error = error
    assert list(job.driver.poll(0)) == [QueryFailed(error)]


def test_a_query_that_ends_by_itself_has_failed(job: Job) -> None:
    job.start().query.ended = True
    [failed] = job.driver.poll(0)
    assert isinstance(failed, QueryFailed)
    assert "its query ended by itself" in str(failed.error)


def test_a_failed_batch_comes_before_the_end_of_its_query(job: Job) -> None:
    running = job.start(ValueError("not a number")).batch(0)
    job.next(BatchPlanned).answer.set_result(Admission.PROCESS)
    running.exception(SECONDS)
    job.query.error = RuntimeError("the same as text")
    assert job.next(QueryFailed).number == 0


def test_each_trigger_is_reported_once_and_then_that_the_query_waits(job: Job) -> None:
    job.start().query.trigger(0, {0: 10}, rows=10, behind=5)
    assert list(job.driver.poll(0)) == [TriggerEnded(10, 5)]
    job.query.waits = True
    assert list(job.driver.poll(0)) == [AtBoundary()]


def test_a_trigger_says_how_much_state_there_is(job: Job) -> None:
    running = job.start()
    running.query.trigger(0, {0: 10}, state=[(3, 1_000), (4, 2_000)])
    assert list(job.driver.poll(0)) == [TriggerEnded(1, 0, StateSize(7, 3_000))]
    running.operator.keys = 5
    running.query.trigger(1, {0: 20})
    assert list(job.driver.rest()) == [TriggerEnded(1, 0, StateSize(5))]


def test_the_last_trigger_of_a_stopped_query_is_not_lost(job: Job) -> None:
    job.start().query.trigger(0, {0: 10}, rows=10)
    job.driver.stop()
    assert list(job.driver.rest()) == [TriggerEnded(10, 0)]


def test_while_batches_follow_each_other_the_progress_is_read_now_and_then(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(micro_batch, "PROGRESS_SECONDS", 1_000.0)
    job.start().query.trigger(0, {0: 10})
    list(job.driver.poll(0))
    job.query.trigger(1, {0: 20})
    running = job.batch(0)
    [planned] = job.driver.poll(SECONDS)
    assert isinstance(planned, BatchPlanned)
    monkeypatch.setattr(micro_batch, "PROGRESS_SECONDS", 0.0)
    planned.answer.set_result(Admission.PROCESS)
    processed, trigger = job.driver.poll(SECONDS)
    assert isinstance(processed, BatchProcessed)
    processed.answer.set_result(None)
    running.result(SECONDS)
    assert trigger == TriggerEnded(1, 0)


def test_a_query_is_warm_after_some_batches_with_events(job: Job) -> None:
    job.start()
    for number, rows in enumerate([5, 0, 5]):
        assert not job.driver.warm
        job.query.trigger(number, {0: 10}, rows=rows)
        list(job.driver.poll(0))
    assert job.driver.warm


@pytest.mark.parametrize(("counts", "mode"), [(True, "update"), (False, "append")])
def test_a_query_has_the_name_the_checkpoint_the_trigger_and_the_mode_of_its_job(counts: bool, mode: str) -> None:
    assert Job(counts=counts).start().operator.writer.options == {
        "name": "spotter",
        "checkpointLocation": "/checkpoint",
        "trigger": {"processingTime": "1000 milliseconds"},
        "mode": mode,
    }


def test_a_warm_up_evaluates_its_events_without_a_query(job: Job) -> None:
    job.driver.warm_up({0: (5, 10)}, lambda: True)
    assert job.evaluated == [{0: (5, 10)}]
