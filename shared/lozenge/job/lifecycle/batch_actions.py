"""The actions on a running query: batches are admitted and accepted, a query is ended, a failed one is recovered."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from lozenge.errors import Flood
from lozenge.job.batch_result import first_reached
from lozenge.job.drivers.driver import (
    Admission,
    AlertsDrafted,
    BatchPlanned,
    BatchProcessed,
    BatchProgressed,
    QueryEvent,
    QueryFailed,
    TriggerEnded,
)
from lozenge.job.lifecycle.circuit_breaker import CircuitBreaker
from lozenge.job.lifecycle.job_parts import Current, Happened, JobParts
from lozenge.job.lifecycle.job_state import JobEvent
from lozenge.job.lifecycle.outputs import Output
from lozenge.job.lifecycle.query_planner import QueryRun
from lozenge.job.lifecycle.start_actions import metadata

EVENT_OF: Mapping[type[QueryEvent], JobEvent] = {
    BatchPlanned: JobEvent.BATCH_PLANNED,
    BatchProcessed: JobEvent.BATCH_PROCESSED,
    AlertsDrafted: JobEvent.ALERTS_DRAFTED,
    QueryFailed: JobEvent.QUERY_FAILED,
}
"""The events of a query that the job decides on. The others are its progress, which `report` passes on."""


class BatchActions:
    """Each action returns the event that follows from it, if one does."""

    def __init__(self, parts: JobParts, current: Current, circuit: CircuitBreaker) -> None:
        self._parts, self._current, self._circuit = parts, current, circuit

    def admit(self, planned: BatchPlanned) -> None:
        """Lets Spark's thread begin with a batch."""
        run, output = self._running()
        if _is_committed(planned.number, run, output):
            planned.answer.set_result(Admission.RECOUNT)
            return
        run.in_flight = True
        if output.counted:
            self._parts.metrics.begun(sum(end - run.read[p] for p, end in planned.ends.items()))
        planned.answer.set_result(Admission.PROCESS)

    def abandon(self, planned: BatchPlanned) -> None:
        """Leaves a batch to the next query, unless Spark counts: its checkpoint would take it for done."""
        if self._parts.declaration.kind.state_in_checkpoint:
            self.admit(planned)
        else:
            planned.answer.set_result(Admission.ABANDON)

    def accept(self, batch: BatchProcessed) -> Happened | None:
        """Commits or buffers a batch. One that can't be accepted has failed, and Spark learns of it too."""
        try:
            published = self._take(batch)
        except Exception as error:
            batch.answer.set_exception(error)
            return Happened(JobEvent.QUERY_FAILED, QueryFailed(error, batch.number, batch.ends))
        batch.answer.set_result(None)
        return Happened(JobEvent.BUFFER_PUBLISHED) if published else None

    def publish(self, drafted: AlertsDrafted) -> Happened | None:
        """Publishes alerts ahead of their batch."""
        run, claimed = self._running()[0], self._current.claimed
        assert claimed is not None
        try:
            claimed.publish(run, drafted.alerts)
        except Exception as error:
            run.in_flight = True  # the operator takes them for emitted
            return Happened(JobEvent.QUERY_FAILED, QueryFailed(error))
        return None

    def report(self, event: QueryEvent) -> None:
        """Reports the progress of the query."""
        parts = self._parts
        match event:
            case BatchProgressed(lag, read):
                parts.metrics.batch_progress(lag, read)
                parts.reporter.update(lag=lag)
                return
            case TriggerEnded(events, lag, state) if self._running()[1].counted:
                parts.metrics.records(events)
                parts.metrics.lag(lag)
                if state is not None:
                    parts.metrics.state.set(*state)
                parts.reporter.update(lag=lag)
        parts.reporter.progressed()

    def end_query(self) -> Happened:
        """Stops the query, and accepts what had ended before. Raises why that can't be accepted."""
        self._parts.driver.stop()
        for event in self._parts.driver.rest():
            failed = None
            match event:
                case BatchProcessed():
                    failed = self.accept(event)
                case AlertsDrafted():
                    failed = self.publish(event)
                case _:
                    self.report(event)
            if failed is not None and failed.event is JobEvent.QUERY_FAILED:
                raise failed.about.error
        return Happened(JobEvent.QUERY_ENDED)

    def recover(self, failed: QueryFailed) -> Happened:
        """Changes what makes the next query get further; raises if a restart or an operator is needed."""
        parts, (run, _) = self._parts, self._running()
        with suppress(Exception):  # most often it has ended already, or with its JVM
            parts.driver.stop()
        ranges = {p: (run.read[p], end) for p, end in failed.ends.items()}
        try:
            parts.recovery.after(failed.error, failed.number, ranges, parts.planner.limit)
        except Flood as flood:
            if parts.specs.spec.standby:  # the live job keeps running
                raise
            return Happened(JobEvent.FLOODED, flood)
        return Happened(JobEvent.RECOVERED)

    def pause(self, flood: Flood) -> None:
        """Opens the circuit: nothing is committed, so nothing is lost."""
        self._circuit.open(flood)

    def _take(self, batch: BatchProcessed) -> bool:
        """Whether the output of a standby was published with it."""
        run, output = self._running()
        if _is_committed(batch.number, run, output):
            run.read |= batch.ends
            return False
        planner, offsets = self._parts.planner, output.position.offsets
        begins = {p: max(run.read[p], offsets[p]) for p in batch.ends}
        excluded = first_reached(planner.builder.events.excluded, begins, batch.ends)
        result = batch.result._replace(failed_records=[*excluded, *batch.result.failed_records])
        committed = output.accept(run, replace(batch, result=result), metadata(self._parts, run, batch.number))
        run.read |= batch.ends
        run.batch, run.in_flight = batch.number, False
        if committed:  # a standby may start again at its first offsets
            if planner.limit is not None:
                planner.limit.succeeded()
            excluded = planner.builder.events.excluded
            planner.builder.events.excluded = [r for r in excluded if r.offset >= run.read.get(r.partition, 0)]
            self._current.output = output.claimed
        self._parts.reporter.first_batch_done()
        return committed and output is not output.claimed

    def _running(self) -> tuple[QueryRun, Output]:
        assert self._current.run is not None
        assert self._current.output is not None
        return self._current.run, self._current.output


def _is_committed(batch: int, run: QueryRun, output: Output) -> bool:
    """Whether the transaction of a batch was committed before a crash."""
    last = output.position.metadata
    return last.checkpoint == run.checkpoint and last.batch >= batch
