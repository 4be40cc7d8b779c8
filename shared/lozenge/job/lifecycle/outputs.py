"""What becomes of a processed batch: a standby buffers it, a live job commits it.

Which output is installed is what "standby" and "live" mean. A cut-over turns the one into the other.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from lozenge.job.batch_result import BatchResult, DraftAlert, count
from lozenge.job.commit.claim import StartPosition
from lozenge.job.commit.live_committer import BatchCommit, LiveCommitter
from lozenge.job.commit.standby_buffer import StandbyBuffer
from lozenge.job.drivers.driver import BatchProcessed
from lozenge.job.lifecycle.circuit_breaker import CircuitBreaker
from lozenge.job.lifecycle.query_planner import QueryRun
from lozenge.job.lifecycle.status_reporter import JobStatusReporter
from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.app_metrics import JobMetrics
from lozenge.process.logging import logger
from lozenge.protocol.commit_metadata import CommitMetadata

REFRESH_SECONDS = 6 * 3600.0
"""How often an idle group commits the same offsets again, so that they do not expire."""


class Output(Protocol):
    """Takes the batches of a job, in order. What a job processes is `counted` if it has an effect at once."""

    counted: bool

    @property
    def claimed(self) -> "LiveOutput | None":
        """The output under the claim of the job, which is installed after the first commit; None before the claim."""
        ...

    @property
    def position(self) -> StartPosition:
        """The committed offsets, and the metadata of the last commit; of a standby those at which it began."""
        ...

    def accept(self, run: QueryRun, batch: BatchProcessed, metadata: CommitMetadata) -> bool:
        """Takes the result of a batch; whether it is committed."""
        ...


class StandbyOutput:
    """Buffers, and forgets what the live job has committed."""

    counted = False
    claimed = None

    def __init__(self, start: StartPosition) -> None:
        self.position = start
        self.buffer = StandbyBuffer(start.offsets)

    def accept(self, run: QueryRun, batch: BatchProcessed, metadata: CommitMetadata) -> bool:
        """Buffers; what a standby processes has no effect yet."""
        self.buffer.add(batch.result)
        return False

    def lag(self, committed: Mapping[int, int], read: Mapping[int, int]) -> int:
        """How far a query that has `read` so far is behind the live job, which has `committed`; prunes the buffer."""
        self.buffer.prune(committed)
        return sum(max(0, offset - read[p]) for p, offset in committed.items())


class LiveOutput:
    """Commits, and reports each commit."""

    counted = True

    def __init__(
        self, committer: LiveCommitter, reporter: JobStatusReporter, metrics: JobMetrics, circuit: CircuitBreaker
    ) -> None:
        self.committer = committer
        self._reporter, self._metrics, self._circuit = reporter, metrics, circuit
        self._committed_at = time.monotonic()  # by the claim

    @property
    def claimed(self) -> "LiveOutput":
        """Itself."""
        return self

    @property
    def position(self) -> StartPosition:
        """Those of the last transaction."""
        return StartPosition(self.committer.offsets, self.committer.metadata)

    def accept(self, run: QueryRun, batch: BatchProcessed, metadata: CommitMetadata) -> bool:
        """Commits; raises Fenced, BrokerUnavailable."""
        self._metrics.begun(batch.uncounted)
        result = batch.result
        processed = BatchCommit(result, run.operator.state_changes(), dict(batch.ends), metadata)
        events = self.committer.commit(processed, run.encoder)
        self._committed_at = time.monotonic()
        self._metrics.committed(events)
        self._reporter.committed(batch.number, self.committer.offsets, events, len(result.failures))
        self._circuit.close()
        self._metrics.batch(time.monotonic() - batch.began)
        count(self._metrics, result)
        self._metrics.emitted(batch.emitted)
        for number, seconds in batch.latencies:
            self._metrics.latency(seconds, number)
        return True

    def publish(self, run: QueryRun, alerts: Sequence[DraftAlert]) -> None:
        """Publishes alerts ahead of the offsets of their events; raises BrokerUnavailable."""
        count(self._metrics, BatchResult(self.committer.publish(alerts, run.encoder)))

    def refresh(self) -> None:
        """Commits the same offsets again if the last commit is long ago; raises Fenced, BrokerUnavailable."""
        if time.monotonic() - self._committed_at > REFRESH_SECONDS:
            self.committer.refresh()
            self._committed_at = time.monotonic()
            self._reporter.update(last_commit_at=time.time())

    def close(self) -> None:
        """Returns once everything that was published is acknowledged; raises BrokerUnavailable."""
        self.committer.close()


class CutOver:
    """Between the claim and the first transaction, which publishes the buffer of the standby.

    That transaction begins exactly at the claimed offsets. So it waits until the query has read that far.
    """

    counted = False

    def __init__(
        self,
        buffer: StandbyBuffer,
        live: LiveOutput,
        kafka: KafkaSettings,
        reporter: JobStatusReporter,
        metrics: JobMetrics,
    ) -> None:
        self.claimed, self._buffer = live, buffer
        self._kafka, self._reporter, self._metrics = kafka, reporter, metrics

    @property
    def position(self) -> StartPosition:
        """The claimed one."""
        return self.claimed.position

    def accept(self, run: QueryRun, batch: BatchProcessed, metadata: CommitMetadata) -> bool:
        """Buffers, and publishes if it can now."""
        self._buffer.add(batch.result)
        return self.publish(run, {**run.read, **batch.ends}, metadata)

    def publish(self, run: QueryRun, read: dict[int, int], metadata: CommitMetadata) -> bool:
        """Commits what is buffered if the query has `read` what the replaced job has committed; whether it did."""
        since = dict(self.claimed.committer.offsets)
        if any(read[p] < offset for p, offset in since.items()):
            return False
        result = self._buffer.prune(since)
        result = result._replace(alerts=run.operator.cut_over(self._kafka, result.alerts))
        processed = BatchCommit(result, run.operator.state_changes(), read, metadata)
        self.claimed.committer.commit(processed, run.encoder)
        self._reporter.went_live(metadata.generation, since, self.claimed.committer.offsets)
        count(self._metrics, result)
        logger().info("cut over, live", generation=metadata.generation, since=since, published=len(result.alerts))
        return True
