"""The parts of a job, and what of it changes while it runs."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from lozenge.detector.manifest import Manifest
from lozenge.job.commit.claim import Claims
from lozenge.job.drivers.driver import QueryDriver
from lozenge.job.identity import Identity
from lozenge.job.lifecycle.backfill_worker import BackfillWorker
from lozenge.job.lifecycle.job_state import JobEvent
from lozenge.job.lifecycle.outputs import LiveOutput, Output
from lozenge.job.lifecycle.partition_assignment import PartitionAssignment
from lozenge.job.lifecycle.query_planner import QueryPlanner, QueryRun
from lozenge.job.lifecycle.recovery import Recovery
from lozenge.job.lifecycle.spec_watcher import SpecWatcher
from lozenge.job.lifecycle.status_reporter import JobStatusReporter
from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.app_metrics import JobMetrics


@dataclass(frozen=True, slots=True)
class JobParts:
    """What a job works with. No part knows of the loop."""

    kafka: KafkaSettings
    identity: Identity
    declaration: Manifest
    specs: SpecWatcher
    claims: Claims
    planner: QueryPlanner
    driver: QueryDriver
    assignment: PartitionAssignment
    backfill: BackfillWorker
    recovery: Recovery
    reporter: JobStatusReporter
    metrics: JobMetrics


@dataclass(slots=True)
class Current:
    """What a job has now: the output that is installed, the query that runs or ran last, and whether it is warm."""

    output: Output | None = None
    run: QueryRun | None = None
    warm: bool = False

    @property
    def claimed(self) -> LiveOutput | None:
        """The output under the claim of the job, installed or not; None before the claim."""
        return self.output.claimed if self.output is not None else None

    @property
    def on_standby(self) -> bool:
        """Whether it processes without a claim."""
        return self.output is not None and self.output.claimed is None


class Happened(NamedTuple):
    """An event, and what it is about, such as the batch that was processed."""

    event: JobEvent
    about: Any = None
