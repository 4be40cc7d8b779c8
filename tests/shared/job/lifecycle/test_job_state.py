"""The table of transitions as a whole: nothing is unreachable, nothing is a dead end, and the picture is of it."""

from pathlib import Path

from lozenge.job.lifecycle.job_state import DRAINS, QUERY_RUNS, TRANSITIONS, JobAction, JobEvent, JobState, diagram

ARCHITECTURE = Path(__file__).parents[4] / "docs/architecture.md"


def reachable(start: JobState) -> set[JobState]:
    found, left = {start}, [start]
    while left:
        state = left.pop()
        new = {to for (before, _), (to, _) in TRANSITIONS.items() if before is state} - found
        found |= new
        left += new
    return found


def test_every_state_is_reached_from_the_first_one() -> None:
    assert reachable(JobState.STARTING) == set(JobState)


def test_a_job_can_be_stopped_from_every_state() -> None:
    assert all(JobState.STOPPED in reachable(state) for state in JobState)


def test_every_event_and_every_action_has_an_entry() -> None:
    assert {event for _, event in TRANSITIONS} == set(JobEvent)
    assert {transition.action for transition in TRANSITIONS.values()} == set(JobAction)


def test_a_query_answers_in_every_state_in_which_it_runs() -> None:
    for event in (JobEvent.BATCH_PLANNED, JobEvent.BATCH_PROCESSED, JobEvent.QUERY_FAILED):
        assert {state for state, known in TRANSITIONS if known is event} == QUERY_RUNS


def test_no_batch_begins_while_a_query_is_drained() -> None:
    admitted = {state for (state, _), (_, action) in TRANSITIONS.items() if action is JobAction.ADMIT}
    assert admitted == QUERY_RUNS - DRAINS


def test_a_job_that_has_stopped_stays_so() -> None:
    assert not [state for state, _ in TRANSITIONS if state is JobState.STOPPED]


def test_the_diagram_in_the_documents_is_that_of_the_table() -> None:
    assert diagram() in ARCHITECTURE.read_text("utf-8"), "run `python -m lozenge.job.lifecycle.job_state`"
