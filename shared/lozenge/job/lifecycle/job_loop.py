"""Runs one detector until it is stopped: a state machine whose transitions are the table in `job_state`.

One thread decides. It polls the query, the spec and the assignment (see `job_watch`), and does what the table says:
1. Claim partitions (see `claim`). A standby reads the group's offsets instead, and claims at the cut-over. One of
   several instances claims the partitions assigned to it, and again whenever the assignment changes.
2. Plan the query at the offsets, restore the state, start the query (see `start_actions` and `query_planner`).
3. Per batch: admit it, then accept its result (see `batch_actions`). The installed output commits or buffers it.
4. When a batch fails, recover (see `recovery`). When settings or reference tables change, stop at a batch boundary and
   plan again in the same session. A live job that fails on too many records pauses and retries later. Anything else
   ends the process, and a restart is always safe.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from lozenge.contracts.topics import Topic
from lozenge.job.lifecycle.batch_actions import BatchActions
from lozenge.job.lifecycle.circuit_breaker import CircuitBreaker
from lozenge.job.lifecycle.job_parts import Current, Happened, JobParts
from lozenge.job.lifecycle.job_state import TRANSITIONS, JobAction, JobEvent, JobState
from lozenge.job.lifecycle.job_watch import JobWatch
from lozenge.job.lifecycle.start_actions import StartActions
from lozenge.kafka.schema_registry import settle_ids
from lozenge.kafka.topic_admin import check_topics


class JobLoop:
    """The job of one detector. `run` returns after `stop`; it raises if a restart or an operator is needed."""

    def __init__(self, parts: JobParts) -> None:
        self.parts, self.current, self.state = parts, Current(), JobState.STARTING
        self._stop = threading.Event()
        circuit = CircuitBreaker(parts.reporter, parts.metrics)
        self._starts = StartActions(parts, self.current, circuit)
        self._batches = BatchActions(parts, self.current, circuit)
        self._watch = JobWatch(parts, self.current, self._batches, self._stop)

    @property
    def offsets(self) -> Mapping[int, int]:
        """The committed offsets by partition; of a standby those at which it began."""
        return self.current.output.position.offsets if self.current.output is not None else {}

    @property
    def circuit_open(self) -> str:
        """Why the job is paused; "" while it is not."""
        return self.parts.reporter.status.circuit_open

    def stop(self) -> None:
        """Requests a stop at the next batch boundary; safe in a signal handler."""
        self._stop.set()

    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stop.is_set()

    def run(self) -> None:
        """Runs through the states."""
        parts = self.parts
        self._check()
        try:
            self.handle(Happened(JobEvent.BEGUN))
            while self.state is not JobState.STOPPED:
                self.advance()
        finally:
            with suppress(Exception):  # the query may have ended with its JVM
                parts.driver.close()
            parts.backfill.stop()
            parts.planner.builder.tables.close()
            parts.assignment.leave()
        if (claimed := self.current.claimed) is not None:
            claimed.close()
        parts.claims.group.close()
        parts.reporter.update(finished_at=time.time())

    def advance(self) -> None:
        """One round: polls, and handles what is found until the state or the query is another."""
        state, run = self.state, self.current.run
        for happened in self._watch.poll(state):
            self.handle(happened)
            if self.state is not state or self.current.run is not run:
                return
        self._heed_stop()

    def handle(self, happened: Happened) -> None:
        """Follows the table for an event, and for those that follow from it. A requested stop comes first."""
        following: Happened | None = happened
        while following is not None:
            self._heed_stop()
            following = self._follow(following)

    def _heed_stop(self) -> None:
        stop: Happened | None = Happened(JobEvent.STOP_REQUESTED) if self._stop.is_set() else None
        while stop is not None:
            stop = self._follow(stop)

    def _follow(self, happened: Happened) -> Happened | None:
        transition = TRANSITIONS.get((self.state, happened.event))
        if transition is None:
            return None
        if transition.to is not self.state:
            self.state = transition.to
            self._watch.entered()
        return self._perform(transition.action, happened)

    def _perform(self, action: JobAction, happened: Happened) -> Happened | None:
        starts, batches, reporter, about = self._starts, self._batches, self.parts.reporter, happened.about
        perform: Mapping[JobAction, Callable[[], Happened | None]] = {
            JobAction.NONE: lambda: None,
            JobAction.START: starts.start,
            JobAction.RESUME: starts.resume,
            JobAction.WARM_UP: lambda: starts.warm_up(self.stopping),
            JobAction.CUT_OVER: starts.cut_over,
            JobAction.REPORT_IDLE: lambda: reporter.idle(self.parts.specs.spec),
            JobAction.REPORT_READY: reporter.ready,
            JobAction.REPORT_SPEC: starts.report_spec,
            JobAction.ADMIT: lambda: batches.admit(about),
            JobAction.ABANDON: lambda: batches.abandon(about),
            JobAction.ACCEPT: lambda: batches.accept(about),
            JobAction.PUBLISH: lambda: batches.publish(about),
            JobAction.END_QUERY: batches.end_query,
            JobAction.RECOVER: lambda: batches.recover(about),
            JobAction.PAUSE: lambda: batches.pause(about),
        }
        return perform[action]()

    def _check(self) -> None:
        """Checks the topics and schemas of the job, and reports that it begins."""
        parts, spec = self.parts, self.parts.specs.spec
        inputs = Topic(parts.identity.input, parts.kafka.topics.partitions)
        check_topics(parts.kafka, [*parts.identity.own_topics(), inputs])
        settle_ids(parts.kafka, ["alert"])
        parts.reporter.update(
            fenced=parts.driver.capabilities.fenced,
            session_started_at=time.time(),
            generation=spec.generation,
            revision=spec.revision,
        )
