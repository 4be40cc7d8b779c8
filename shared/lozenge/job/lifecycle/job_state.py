"""The states of a job and every transition between them, as one table that is also drawn in docs/architecture.md.

An event is what has happened. The table says in which state it leads to which, and what the job does on the way. What a
state has no entry for does not concern it: the event is dropped, and where it still holds it comes again.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple


class JobState(StrEnum):
    """What a job is doing. In the states of `QUERY_RUNS` it has a query."""

    STARTING = "starting"
    """It claims partitions, or reads the offsets of the group, and plans its query."""
    WARMING_UP = "warming up"
    """Spark processes retained events without output, so that the start of the query is fast."""
    WAITING = "waiting"
    """A warm standby without a query. It starts when the job that it replaces has ended."""
    UNASSIGNED = "unassigned"
    """One of several instances, to which no partition is assigned."""
    STANDBY = "standby"
    """It processes events and buffers its output."""
    READY = "ready"
    """A standby that is warm and has caught up with the live job."""
    CUTTING_OVER = "cutting over"
    """It has claimed the partitions, and has not published what it buffered."""
    LIVE = "live"
    """It processes and commits."""
    REPLANNING = "replanning"
    """The query runs to a batch boundary, and is then planned again."""
    RECOVERING = "recovering"
    """Its query has failed. It changes what makes the next one get further."""
    PAUSED = "paused"
    """The circuit is open: too many records fail. It retries, or waits for another spec."""
    STOPPING = "stopping"
    """The query runs to a batch boundary, and the job then ends."""
    STOPPED = "stopped"


class JobEvent(StrEnum):
    """What has happened to a job."""

    BEGUN = "begun"
    STOP_REQUESTED = "stop requested"
    STANDBY_STARTED = "standby started"
    LIVE_STARTED = "live started"
    PREVIOUS_INSTANCE_RUNS = "previous instance runs"
    NOTHING_ASSIGNED = "nothing assigned"
    WARM = "warm"
    SPEC_CHANGED = "spec changed"
    MADE_LIVE = "made live"
    ASSIGNMENT_CHANGED = "assignment changed"
    REPLAN_DUE = "replan due"
    CAUGHT_UP = "caught up"
    BATCH_PLANNED = "batch planned"
    BATCH_PROCESSED = "batch processed"
    ALERTS_DRAFTED = "alerts drafted"
    BUFFER_PUBLISHED = "buffer published"
    BOUNDARY_REACHED = "boundary reached"
    QUERY_ENDED = "query ended"
    QUERY_FAILED = "query failed"
    RECOVERED = "recovered"
    FLOODED = "too many failures"
    RETRY_DUE = "retry due"


class JobAction(StrEnum):
    """What a job does on a transition. Each may return the event that follows from it."""

    NONE = ""
    START = "claim, plan, start"
    RESUME = "close the circuit, start"
    WARM_UP = "warm up"
    REPORT_IDLE = "report"
    REPORT_READY = "report ready"
    REPORT_SPEC = "report the spec"
    ADMIT = "admit"
    ABANDON = "abandon"
    ACCEPT = "commit or buffer"
    PUBLISH = "publish"
    CUT_OVER = "claim, publish the buffer"
    END_QUERY = "stop the query"
    RECOVER = "recover"
    PAUSE = "open the circuit"


class Transition(NamedTuple):
    """The state that follows, and what the job does in it at once."""

    to: JobState
    action: JobAction = JobAction.NONE


QUERY_RUNS = frozenset(
    {
        JobState.STANDBY,
        JobState.READY,
        JobState.CUTTING_OVER,
        JobState.LIVE,
        JobState.REPLANNING,
        JobState.STOPPING,
    }
)
"""The states with a query."""
DRAINS = frozenset({JobState.REPLANNING, JobState.STOPPING})
"""The states in which no further batch begins."""
STANDBY_RUNS = frozenset({JobState.STANDBY, JobState.READY})
"""The states of a standby that processes events."""


def _table() -> Iterator[tuple[tuple[JobState, JobEvent], Transition]]:
    state, event, action = JobState, JobEvent, JobAction
    start = Transition(state.STARTING, action.START)
    yield (state.STARTING, event.BEGUN), start
    yield (state.STARTING, event.STANDBY_STARTED), Transition(state.STANDBY)
    yield (state.STARTING, event.LIVE_STARTED), Transition(state.LIVE)
    yield (state.STARTING, event.PREVIOUS_INSTANCE_RUNS), Transition(state.WARMING_UP, action.WARM_UP)
    yield (state.STARTING, event.NOTHING_ASSIGNED), Transition(state.UNASSIGNED, action.REPORT_IDLE)
    yield (state.STARTING, event.STOP_REQUESTED), Transition(state.STOPPED)

    yield (state.WARMING_UP, event.WARM), Transition(state.WAITING, action.REPORT_IDLE)
    for idle in (state.WAITING, state.UNASSIGNED):
        yield (idle, event.SPEC_CHANGED), start
        yield (idle, event.STOP_REQUESTED), Transition(state.STOPPED)
    yield (state.UNASSIGNED, event.ASSIGNMENT_CHANGED), start

    for runs in (state.STANDBY, state.READY, state.CUTTING_OVER, state.LIVE):
        yield (runs, event.BATCH_PLANNED), Transition(runs, action.ADMIT)
        yield (runs, event.BATCH_PROCESSED), Transition(runs, action.ACCEPT)
        yield (runs, event.QUERY_FAILED), Transition(state.RECOVERING, action.RECOVER)
        yield (runs, event.SPEC_CHANGED), Transition(runs, action.REPORT_SPEC)
        yield (runs, event.STOP_REQUESTED), Transition(state.STOPPING)
    yield (state.STANDBY, event.CAUGHT_UP), Transition(state.READY, action.REPORT_READY)
    for standby in (state.STANDBY, state.READY):
        yield (standby, event.MADE_LIVE), Transition(state.CUTTING_OVER, action.CUT_OVER)
    yield (state.CUTTING_OVER, event.BUFFER_PUBLISHED), Transition(state.LIVE)
    yield (state.LIVE, event.ALERTS_DRAFTED), Transition(state.LIVE, action.PUBLISH)
    for planned in (state.STANDBY, state.READY, state.LIVE):  # a cut-over is not interrupted
        yield (planned, event.REPLAN_DUE), Transition(state.REPLANNING)
    yield (state.LIVE, event.ASSIGNMENT_CHANGED), Transition(state.REPLANNING)

    for drains in (state.REPLANNING, state.STOPPING):
        yield (drains, event.BATCH_PLANNED), Transition(drains, action.ABANDON)
        yield (drains, event.BATCH_PROCESSED), Transition(drains, action.ACCEPT)
        yield (drains, event.ALERTS_DRAFTED), Transition(drains, action.PUBLISH)
        yield (drains, event.BOUNDARY_REACHED), Transition(drains, action.END_QUERY)
    yield (state.REPLANNING, event.QUERY_ENDED), start
    yield (state.REPLANNING, event.QUERY_FAILED), Transition(state.RECOVERING, action.RECOVER)
    yield (state.REPLANNING, event.STOP_REQUESTED), Transition(state.STOPPING)
    yield (state.STOPPING, event.QUERY_ENDED), Transition(state.STOPPED)
    yield (state.STOPPING, event.QUERY_FAILED), Transition(state.STOPPING, action.END_QUERY)

    yield (state.RECOVERING, event.RECOVERED), start
    yield (state.RECOVERING, event.FLOODED), Transition(state.PAUSED, action.PAUSE)
    yield (state.PAUSED, event.SPEC_CHANGED), Transition(state.PAUSED, action.REPORT_SPEC)
    yield (state.PAUSED, event.RETRY_DUE), start
    yield (state.PAUSED, event.ASSIGNMENT_CHANGED), start
    yield (state.PAUSED, event.REPLAN_DUE), Transition(state.STARTING, action.RESUME)
    yield (state.PAUSED, event.STOP_REQUESTED), Transition(state.STOPPED)


TRANSITIONS: Mapping[tuple[JobState, JobEvent], Transition] = dict(_table())
"""Every transition there is."""


def diagram() -> str:
    """The table as a Mermaid state diagram. Transitions within a state are not in it."""
    arrows: dict[tuple[JobState, JobState], list[str]] = {}
    for (state, event), (to, _) in TRANSITIONS.items():
        if state is not to:
            arrows.setdefault((state, to), []).append(event)
    lines = ["stateDiagram-v2", f"    [*] --> {_name(JobState.STARTING)}"]
    lines += [f"    {_name(state)} --> {_name(to)}: {', '.join(events)}" for (state, to), events in arrows.items()]
    return "\n".join([*lines, f"    {_name(JobState.STOPPED)} --> [*]"])


def _name(state: JobState) -> str:
    return state.replace(" ", "_")


if __name__ == "__main__":
    print(diagram())
