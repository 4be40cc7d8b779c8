"""The actions by which a job comes to process: claim, warm up, plan and start a query, cut over."""

from collections.abc import Callable, Collection
from contextlib import suppress

from lozenge.errors import DetectorError
from lozenge.job.commit.alert_encoder import AlertEncoder
from lozenge.job.commit.live_committer import LiveCommitter
from lozenge.job.drivers.driver import QueryPlan
from lozenge.job.lifecycle.circuit_breaker import CircuitBreaker
from lozenge.job.lifecycle.job_parts import Current, Happened, JobParts
from lozenge.job.lifecycle.job_state import JobEvent
from lozenge.job.lifecycle.outputs import CutOver, LiveOutput, StandbyOutput
from lozenge.job.lifecycle.query_planner import PlannedStart, QueryRun
from lozenge.process.logging import logger
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.protocol.coverage import Versions
from lozenge.protocol.job_status import JobPhase

WARM_UP_OFFSETS = 1_000
"""How many events of each partition a warm-up run processes."""


class StartActions:
    """Each action returns the event that follows from it."""

    def __init__(self, parts: JobParts, current: Current, circuit: CircuitBreaker) -> None:
        self._parts, self._current, self._circuit = parts, current, circuit

    def start(self) -> Happened:
        """Claims the partitions to process, if they have changed, and starts a query; a standby claims nothing."""
        parts, spec = self._parts, self._parts.specs.spec
        if spec.standby and (spec.shared or not parts.driver.capabilities.standby):
            return Happened(JobEvent.PREVIOUS_INSTANCE_RUNS)
        parts.planner.configure(parts.specs.config)
        if spec.shared:
            return self._start_live() if self._claim_assigned() else Happened(JobEvent.NOTHING_ASSIGNED)
        parts.assignment.leave()
        if spec.standby:
            return self._start_standby()
        self._claim_all()
        return self._start_live()

    def resume(self) -> Happened:
        """Starts again under a new configuration: the failures were those of the previous one."""
        self._circuit.close()
        return self.start()

    def warm_up(self, stopped: Callable[[], bool]) -> Happened:
        """Lets Spark plan and compile, so that claimed partitions need not wait for it; ends early once `stopped`."""
        parts = self._parts
        if not self._current.warm:
            parts.reporter.update(phase=JobPhase.WARMING_UP)
            newest = parts.planner.newest(WARM_UP_OFFSETS)
            with suppress(Exception):  # a failure on these events is handled where they are processed
                parts.driver.warm_up(newest, stopped)
        self._current.warm = True
        return Happened(JobEvent.WARM)

    def cut_over(self) -> Happened | None:
        """Claims. From then on the replaced job commits nothing more, and the buffer is published once it can be."""
        parts, current, run = self._parts, self._current, self._current.run
        assert run is not None
        standby = current.output
        assert isinstance(standby, StandbyOutput)
        live = self._claim(
            Versions(parts.reporter.status.digest, parts.reporter.status.tables)
        )  # it processed with them
        current.output = cut = CutOver(standby.buffer, live, parts.kafka, parts.reporter, parts.metrics)
        parts.assignment.exclusive = True
        self._start_backfill()
        published = not run.in_flight and cut.publish(run, run.read, metadata(parts, run, run.batch))
        self.report_spec()
        if not published:
            return None
        current.output = live
        return Happened(JobEvent.BUFFER_PUBLISHED)

    def report_spec(self) -> None:
        """Reports a spec that is in force; one for which the query is planned again is reported when that starts."""
        run, specs = self._current.run, self._parts.specs
        if run is not None and run.config == specs.config:
            self._parts.reporter.update(rejected="", revision=specs.spec.revision)

    def _claim_all(self) -> None:
        parts, claimed = self._parts, self._current.claimed
        if not parts.assignment.exclusive:
            self._current.output = self._claim(parts.planner.builder.versions)
            parts.reporter.update(generation=parts.specs.spec.generation)
            parts.assignment.exclusive = True
            self._start_backfill()
        elif claimed is not None and claimed is not self._current.output:
            self._drop_buffer(claimed)

    def _claim_assigned(self) -> bool:
        """Claims the partitions that are assigned to this instance; whether there are any."""
        parts = self._parts
        parts.backfill.stop()  # several instances would backfill the same gaps; `lozenge backfill` can
        assigned = parts.assignment.assigned()
        if assigned and assigned != parts.assignment.claimed:
            standby = self._current.on_standby
            live = self._claim(parts.planner.builder.versions, assigned)
            self._current.output, self._current.run = live, None  # its state is of other partitions
            if standby:
                self._drop_buffer(live)
        parts.assignment.claimed = assigned
        return bool(assigned)

    def _claim(self, versions: Versions, among: Collection[int] | None = None) -> LiveOutput:
        """From now on nobody else commits for these partitions, and their committed offsets are known."""
        parts = self._parts
        if self._current.claimed is not None:
            self._current.claimed.close()
        generation = parts.specs.spec.generation
        claim = parts.claims.claim(generation, versions, among, was_standby=self._current.on_standby)
        committer = LiveCommitter(parts.kafka, parts.identity, parts.declaration, parts.claims, claim)
        return LiveOutput(committer, parts.reporter, parts.metrics, self._circuit)

    def _drop_buffer(self, live: LiveOutput) -> None:
        """The query ended between the claim and the first transaction: start at the claimed offsets."""
        parts = self._parts
        if not parts.declaration.stateless and parts.planner.policy != "keep":
            raise DetectorError(
                f"cutting over to {parts.identity.app}: the query stopped before the standby output was published",
                hint="see the log above; nothing was published, and the previous release resumes at the same offsets",
            )
        self._current.output, self._current.run = live, None
        generation, offsets = parts.specs.spec.generation, live.committer.offsets
        parts.reporter.went_live(generation, offsets, offsets)
        logger().info("cut over, live", generation=generation, since=offsets)

    def _start_backfill(self) -> None:
        """The live job backfills what was skipped at any start."""
        if self._parts.declaration.backlog == "newest-first" and self._parts.identity.live:
            self._parts.backfill.start()

    def _start_standby(self) -> Happened:
        planned = self._parts.planner.standby(self._parts.claims)
        self._current.output = StandbyOutput(planned.position)
        self._start_query(planned, JobPhase.STANDBY, None)
        return Happened(JobEvent.STANDBY_STARTED)

    def _start_live(self) -> Happened:
        parts, run, live = self._parts, self._current.run, self._current.claimed
        assert live is not None
        live.committer.record_versions(parts.planner.builder.versions)
        previous = run.operator if run is not None and not run.in_flight else None
        # a standby that runs no query leaves its state policy to the first query after it
        waited = self._current.warm and not parts.driver.capabilities.standby
        replaces = waited and not parts.reporter.status.first_batch_at
        planned = parts.planner.live(live.position, previous, replaces=replaces)
        self._start_query(planned, JobPhase.LIVE, live.committer)
        return Happened(JobEvent.LIVE_STARTED)

    def _start_query(self, planned: PlannedStart, phase: JobPhase, committer: LiveCommitter | None) -> None:
        parts, spec, config = self._parts, self._parts.specs.spec, self._parts.specs.config
        encoder = AlertEncoder(parts.identity, parts.declaration, parts.planner.builder.versions)
        self._current.run = QueryRun(
            operator=planned.operator,
            read=planned.begins,
            encoder=encoder,
            config=config,
            shared=spec.shared,
            checkpoint=parts.planner.checkpoint.id,
        )
        parts.driver.start(QueryPlan(planned.operator, planned.begins, config.trigger, committer))
        offsets = dict(planned.position.offsets)
        parts.reporter.query_started(phase, spec.revision, parts.planner.builder.versions, offsets)


def metadata(parts: JobParts, run: QueryRun, batch: int) -> CommitMetadata:
    """The metadata of a commit up to this batch of the query."""
    ahead = not parts.driver.capabilities.fenced
    return CommitMetadata(parts.specs.spec.generation, run.checkpoint, batch, ahead)
