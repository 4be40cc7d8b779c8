"""Polls what a job has to decide on, and makes events of what it finds."""

import time
from collections.abc import Iterator

from lozenge.job.lifecycle.batch_actions import EVENT_OF, BatchActions
from lozenge.job.lifecycle.circuit_breaker import RETRY_INTERVAL_SECONDS
from lozenge.job.lifecycle.job_parts import Current, Happened, JobParts
from lozenge.job.lifecycle.job_state import DRAINS, QUERY_RUNS, STANDBY_RUNS, JobEvent, JobState
from lozenge.job.lifecycle.outputs import StandbyOutput
from lozenge.process.logging import logger
from lozenge.process.shutdown import STOP_SECONDS, Stop

TABLE_POLL_SECONDS = 2.0
"""How often it looks for new reference tables."""
TABLE_HINT = "put a good file in its place; if this one is as it should be, deploy the detector again"
"""What a person does about a refused table."""
READINESS_POLL_SECONDS = 0.5
"""How often a standby compares its offsets with those of the live job."""
CAUGHT_UP_OFFSETS = 1_000
"""A warm standby is ready while its lag to the live job is at most this."""
POLL_SECONDS = {JobState.LIVE: 0.2, JobState.PAUSED: 0.2} | dict.fromkeys(DRAINS, 0.02)
"""How long a poll waits for the query at most, by state."""
STANDBY_POLL_SECONDS = 0.05
"""The same in every other state: a standby has to notice at once that it is made live."""
_REPLANS = STANDBY_RUNS | {JobState.LIVE, JobState.PAUSED}


class JobWatch:
    """Used by the thread of the loop. `entered` is called whenever the state changes."""

    def __init__(self, parts: JobParts, current: Current, batches: BatchActions, stop: Stop) -> None:
        self._parts, self._current, self._batches, self._stop = parts, current, batches, stop
        self._entered = self._tables_polled = self._readiness_polled = time.monotonic()

    def entered(self) -> None:
        """From now on times count that depend on how long a job is in a state."""
        self._entered = time.monotonic()

    def poll(self, state: JobState) -> Iterator[Happened]:
        """What has happened in `state`. The caller continues only while the state is the same."""
        seconds = POLL_SECONDS.get(state, STANDBY_POLL_SECONDS)
        if state in QUERY_RUNS:
            for event in self._parts.driver.poll(seconds):
                if (kind := EVENT_OF.get(type(event))) is not None:
                    yield Happened(kind, event)
                else:
                    self._batches.report(event)
        else:
            self._parts.reporter.progressed()
            self._stop.wait(seconds)
        if state in DRAINS:
            if self._drained(state):
                yield Happened(JobEvent.BOUNDARY_REACHED)
            return
        if state in STANDBY_RUNS and self._caught_up():
            yield Happened(JobEvent.CAUGHT_UP)
        if (claimed := self._current.claimed) is not None:
            claimed.refresh()
        if state is JobState.PAUSED and time.monotonic() - self._entered > RETRY_INTERVAL_SECONDS:
            yield Happened(JobEvent.RETRY_DUE)
        yield from self._new_spec(state)
        if self._parts.assignment.changed:
            yield Happened(JobEvent.ASSIGNMENT_CHANGED)
        if state in _REPLANS and self._replan_due(state):
            yield Happened(JobEvent.REPLAN_DUE)

    def _drained(self, state: JobState) -> bool:
        """Whether the query may be stopped.

        On a stop of the job the batch is never cut short: who sent the signal limits how long that may take.
        """
        overdue = state is JobState.REPLANNING and time.monotonic() - self._entered > STOP_SECONDS
        return overdue or self._parts.driver.at_boundary

    def _caught_up(self) -> bool:
        """Drops buffered output that the live job has committed; whether the standby is warm and has caught up."""
        if time.monotonic() - self._readiness_polled < READINESS_POLL_SECONDS:
            return False
        self._readiness_polled = time.monotonic()
        output, run = self._current.output, self._current.run
        assert isinstance(output, StandbyOutput)
        assert run is not None
        lag = output.lag(self._parts.claims.group.glance().offsets, run.read)
        return self._parts.driver.warm and lag <= CAUGHT_UP_OFFSETS

    def _new_spec(self, state: JobState) -> Iterator[Happened]:
        change = self._parts.specs.poll(self._parts.planner.check)
        if change is not None:
            cuts_over = change.cuts_over and state in STANDBY_RUNS
            yield Happened(JobEvent.MADE_LIVE if cuts_over else JobEvent.SPEC_CHANGED)

    def _replan_due(self, state: JobState) -> bool:
        """Whether the query that runs, or ran last, is not the one that there should be."""
        run, specs, planner = self._current.run, self._parts.specs, self._parts.planner
        assert run is not None
        if specs.config != run.config or specs.spec.shared != run.shared:
            return True
        if state is JobState.PAUSED:
            return False
        if planner.limit is not None and planner.limit.grow():
            return True
        if time.monotonic() - self._tables_polled < TABLE_POLL_SECONDS:
            return False
        self._tables_polled = time.monotonic()
        return self._new_tables()

    def _new_tables(self) -> bool:
        """Whether good versions of tables have come; a bad one is reported, and changes nothing."""
        tables, reporter = self._parts.planner.builder.tables, self._parts.reporter
        found, known = tables.poll(), reporter.status.table_alarms
        if (alarms := tables.alarms()) != known:
            for alarm in alarms:
                if alarm not in known:
                    logger().error(f"running {self._parts.identity.app}: {alarm}", hint=TABLE_HINT)
            self._parts.metrics.health(tables_refused=len(alarms))
            reporter.update(table_alarms=alarms)
        return found
