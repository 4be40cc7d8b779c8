"""The handover between Spark's thread and the thread of the loop."""

from concurrent.futures import Future

import pytest

from lozenge.errors import Fenced
from lozenge.job.batch_result import BatchResult
from lozenge.job.drivers.driver import (
    Abandoned,
    Admission,
    AtBoundary,
    BatchPlanned,
    BatchProcessed,
    Handover,
    TriggerEnded,
)
from tests.shared.job.drivers.scripted import SECONDS, in_thread


@pytest.fixture
def handover() -> Handover:
    return Handover()


def planned() -> BatchPlanned:
    return BatchPlanned(0, {0: 10})


def processed() -> BatchProcessed:
    return BatchProcessed(0, {0: 10}, BatchResult([]), 0.0)


@pytest.mark.parametrize("answer", Admission)
def test_a_planned_batch_waits_for_the_answer_of_the_loop(answer: Admission, handover: Handover) -> None:
    batch = planned()
    admission = in_thread(handover.admission, batch)
    assert handover.take(SECONDS) is batch
    assert not admission.done()
    batch.answer.set_result(answer)
    assert admission.result(SECONDS) is answer


def test_a_processed_batch_is_over_once_it_is_accepted(handover: Handover) -> None:
    batch = processed()
    acceptance = in_thread(handover.acceptance, batch)
    assert handover.take(SECONDS) is batch
    assert not acceptance.done()
    batch.answer.set_result(None)
    acceptance.result(SECONDS)


def test_why_a_batch_is_refused_is_raised_in_the_thread_of_spark(handover: Handover) -> None:
    batch, refusal = processed(), Fenced("a newer job has claimed")
    acceptance = in_thread(handover.acceptance, batch)
    handover.take(SECONDS)
    batch.answer.set_exception(refusal)
    assert acceptance.exception(SECONDS) is refusal


def test_events_are_taken_in_the_order_in_which_they_were_passed(handover: Handover) -> None:
    events = [TriggerEnded(number, 0) for number in range(3)]
    for event in events:
        handover.put(event)
    assert [handover.take(0) for _ in events] == events


def test_without_an_event_nothing_is_taken(handover: Handover) -> None:
    assert handover.take(0.001) is None


@pytest.mark.parametrize("waits_for", ["admission", "acceptance"])
def test_closing_ends_the_wait_of_the_thread_of_spark(waits_for: str, handover: Handover) -> None:
    waiting: Future[object]
    if waits_for == "admission":
        waiting = in_thread(handover.admission, planned())
    else:
        waiting = in_thread(handover.acceptance, processed())
    assert handover.take(SECONDS) is not None
    handover.close()
    assert isinstance(waiting.exception(SECONDS), Abandoned)


def test_after_closing_no_thread_begins_to_wait_and_no_batch_reaches_the_loop(handover: Handover) -> None:
    handover.close()
    assert isinstance(in_thread(handover.admission, planned()).exception(SECONDS), Abandoned)
    assert isinstance(in_thread(handover.acceptance, processed()).exception(SECONDS), Abandoned)
    assert handover.take(0) is None


def test_an_answer_that_was_given_before_closing_holds(handover: Handover) -> None:
    batch = planned()
    admission = in_thread(handover.admission, batch)
    handover.take(SECONDS)
    batch.answer.set_result(Admission.PROCESS)
    handover.close()
    assert admission.result(SECONDS) is Admission.PROCESS


def test_what_needs_no_answer_is_passed_after_closing_too(handover: Handover) -> None:
    handover.close()
    handover.put(AtBoundary())
    assert handover.take(0) == AtBoundary()
