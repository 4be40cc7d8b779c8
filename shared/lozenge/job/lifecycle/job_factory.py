"""Makes the parts of a detector's job, by its declared kind and mode."""

from functools import partial

from pyspark.sql import SparkSession

from lozenge.detector.loader import LoadedDetector
from lozenge.detector.manifest import Manifest
from lozenge.detector.tables.reference_tables import ReferenceTables
from lozenge.job.commit.claim import Claims
from lozenge.job.drivers.driver import QueryDriver
from lozenge.job.drivers.micro_batch import MicroBatchDriver
from lozenge.job.drivers.realtime import RealtimeDriver, RealtimePublisher
from lozenge.job.drivers.realtime_aggregates import AggregatePublisher
from lozenge.job.drivers.realtime_rules import RulePublisher
from lozenge.job.effective_config import JobSpecFile
from lozenge.job.identity import Identity
from lozenge.job.lifecycle.backfill_worker import BackfillWorker
from lozenge.job.lifecycle.job_parts import JobParts
from lozenge.job.lifecycle.partition_assignment import PartitionAssignment
from lozenge.job.lifecycle.query_planner import QueryPlanner
from lozenge.job.lifecycle.recovery import Recovery
from lozenge.job.lifecycle.spec_watcher import SpecWatcher
from lozenge.job.lifecycle.status_reporter import JobStatusReporter
from lozenge.job.query.event_reader import EventReader
from lozenge.job.query.query_builder import QueryBuilder
from lozenge.job.query.topic_versions import FollowedTopic
from lozenge.job.settings import JobSettings
from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.app_metrics import JobMetrics
from lozenge.spark.checkpoint import Checkpoint
from lozenge.spark.conf import most_slots


def job_parts(
    loaded: LoadedDetector, job: JobSettings, kafka: KafkaSettings, spark: SparkSession, metrics: JobMetrics
) -> JobParts:
    """The parts of a job of `loaded`, in the given session; raises ConfigError if its spec is not valid."""
    declaration, identity = loaded.declaration, Identity.of(loaded, job, kafka.topics)
    reporter = JobStatusReporter(job.folder)
    specs = SpecWatcher(loaded, JobSpecFile(job), reporter)
    checkpoint = Checkpoint(job.own_folder(identity.app) / "checkpoint")
    tables = ReferenceTables(
        declaration.tables, loaded.folder, job.tables_folder(identity.app), partial(FollowedTopic, kafka)
    )
    builder = QueryBuilder(
        loaded, identity, specs.config.settings, EventReader(identity, declaration, kafka, spark), tables
    )
    claims = Claims(kafka, identity, kafka.topics.partitions, declaration)
    driver: QueryDriver
    if declaration.realtime:
        publisher: RealtimePublisher
        if declaration.kind.state_in_checkpoint:
            publisher = AggregatePublisher(identity, kafka)
        else:
            publisher = RulePublisher(identity, kafka, spark, builder)
        driver = RealtimeDriver(identity, kafka, spark, claims.group, builder, checkpoint, publisher, job.short_batches)
    else:
        driver = MicroBatchDriver(identity.app, builder, checkpoint, counts=declaration.kind.state_in_checkpoint)
    limited = driver.capabilities.limited
    return JobParts(
        kafka=kafka,
        identity=identity,
        declaration=declaration,
        specs=specs,
        claims=claims,
        planner=QueryPlanner(kafka, identity, declaration, builder, checkpoint, job.state, limited=limited),
        driver=driver,
        assignment=PartitionAssignment(kafka, identity),
        backfill=BackfillWorker(loaded, job, kafka, spark, metrics),
        recovery=Recovery(identity.app, builder, checkpoint, kafka, spark, reporter),
        reporter=reporter,
        metrics=metrics,
    )


def slots(manifest: Manifest, partitions: int) -> int:
    """How many tasks run at once: in Real-Time Mode all of a query's tasks, which may be more than the cores."""
    if not manifest.mode.holds_slots:
        return 1
    return most_slots(partitions) if manifest.kind.state_in_checkpoint else partitions
