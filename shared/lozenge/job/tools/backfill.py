"""`python -m lozenge.job.tools.backfill [NAME | FOLDER]`: processes events that no release has processed.

It runs concurrently with the live job. Every step is one transaction: alerts, dead letters, and the coverage of the
events. So a backfill that is killed is run again, and of two at once the later one fences the earlier. Alerts have the
ids that the live job would have given them. Prints one JSON object for each step, and ends between two steps at
SIGTERM. Exit codes are those of the job.

Only for detectors without state: the alerts of a fold or an aggregate depend on earlier events.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from lozenge.detector.loader import LoadedDetector
from lozenge.detector.manifest import Manifest
from lozenge.detector.tables.reference_tables import ReferenceTables
from lozenge.errors import UsageError
from lozenge.host.tool_host import tool_session
from lozenge.job.batch_result import BatchResult
from lozenge.job.commit.alert_encoder import AlertEncoder
from lozenge.job.commit.dead_letter_encoder import dead_letters
from lozenge.job.effective_config import JobSpecFile
from lozenge.job.identity import Identity
from lozenge.job.query.event_reader import EventReader
from lozenge.job.query.poison_search import Ranges
from lozenge.job.query.query_builder import QueryBuilder
from lozenge.job.query.range_evaluator import chunks, evaluate, size
from lozenge.job.query.topic_versions import PresentTopic
from lozenge.job.settings import JobSettings, detector_settings
from lozenge.job.tools import command
from lozenge.kafka.group_offsets import ConsumerGroup
from lozenge.kafka.schema_registry import settle_ids
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import topic_id
from lozenge.kafka.topic_reader import bounds, read_log
from lozenge.kafka.writers import TransactionalWriter
from lozenge.process.env_settings import load
from lozenge.process.shutdown import end
from lozenge.protocol.coverage import BACKFILLED, CoverageSegment, Interval, Versions, gaps, intervals

STEP_OFFSETS = 50_000
"""Offsets of one transaction, and the most that a backfill reprocesses after a kill."""
GapFilter = Callable[[list[CoverageSegment], list[Interval]], list[Interval]]
"""Selects gaps, given the coverage and the intervals that it makes."""


@dataclass(frozen=True)
class BackfillStep:
    """One transaction. `remaining` offsets are still to be processed; retention has deleted `expired` ones."""

    events: int
    alerts: int
    dead_letters: int
    remaining: int
    expired: int


def backfill(
    loaded: LoadedDetector,
    job: JobSettings,
    kafka: KafkaSettings,
    gap_filter: GapFilter = lambda _, covered: gaps(covered),
    spark: SparkSession | None = None,
) -> Iterator[BackfillStep]:
    """Processes every gap of the detector's coverage, or those of `gap_filter`, the oldest of each partition first.

    Starts a Spark session if none is given and there is a gap. Raises what the start of a job raises.
    """
    declaration = loaded.declaration
    if not declaration.stateless:
        raise UsageError(
            f"backfilling {loaded.name}: the alerts of a {declaration.kind} detector depend on its state",
            hint=f"`lozenge offsets {loaded.name} --to ... --state rebuild` reprocesses the events in their order",
        )
    settle_ids(kafka, ["alert"])
    settings = detector_settings(loaded, JobSpecFile(job).current.settings)
    identity = Identity(loaded.name, job.release, live=True, key=loaded.key, topics=kafka.topics, stream=loaded.stream)
    writer = TransactionalWriter(kafka, f"{loaded.name}@backfill")
    writer.fence()  # before the gaps are read: afterwards no other backfill can commit
    ranges, expired = _gaps(kafka, identity, gap_filter)
    remaining = size(ranges)
    if expired and not ranges:
        yield BackfillStep(0, 0, 0, 0, expired)
    copies = job.tables_folder(identity.app) if spark else None
    tables = ReferenceTables(declaration.tables, loaded.folder, copies, partial(PresentTopic, kafka))
    while ranges:
        spark = spark or tool_session(f"{loaded.name}-backfill")
        for part in chunks(ranges, STEP_OFFSETS):
            tables.take()
            builder = QueryBuilder(loaded, identity, settings, EventReader(identity, declaration, kafka, spark), tables)
            builder.events.learn()
            result = evaluate(builder, declaration.kind, part, kafka.partitions)
            _commit(kafka, identity, writer, declaration, result, part, builder.versions)
            remaining -= size(part)
            yield BackfillStep(size(part), len(result.alerts), len(result.failures), remaining, expired)
        ranges, expired = _gaps(kafka, identity, gap_filter)
        remaining = size(ranges)


def _gaps(kafka: KafkaSettings, identity: Identity, gap_filter: GapFilter) -> tuple[Ranges, int]:
    """The retained part of the first gap of each partition, and the number of offsets that retention has deleted."""
    assert identity.coverage is not None
    group = ConsumerGroup(kafka, identity.app, identity.input, kafka.partitions)
    committed = group.glance().offsets
    group.close()
    earliest = {p: low for p, (low, _) in bounds(kafka, identity.input, kafka.partitions).items()}
    first: Ranges = {}
    expired = 0
    segments = read_log(kafka, identity.coverage, CoverageSegment)
    for gap in gap_filter(segments, intervals(segments, committed)):
        begin = max(gap.begin, min(gap.end, earliest[gap.partition]))
        expired += begin - gap.begin
        if begin < gap.end:
            first.setdefault(gap.partition, (begin, gap.end))
    return first, expired


def _commit(
    kafka: KafkaSettings,
    identity: Identity,
    writer: TransactionalWriter,
    declaration: Manifest,
    result: BatchResult,
    part: Ranges,
    versions: Versions,
) -> None:
    assert identity.coverage is not None
    now, alerts = datetime.now(UTC), AlertEncoder(identity, declaration, versions)
    segment = CoverageSegment(
        reason=BACKFILLED,
        release=identity.release,
        digest=versions.settings,
        tables=versions.tables,
        generation=0,
        ended={},
        since={p: begin for p, (begin, _) in part.items()},
        until={p: end for p, (_, end) in part.items()},
        input_id=topic_id(kafka, identity.input),
    )
    writer.write(
        [
            *(alerts.record(draft, now) for draft in result.alerts),
            *dead_letters(kafka, identity, result),
            segment.record(identity.coverage),
        ]
    )


def _results(loaded: LoadedDetector, _: argparse.Namespace) -> Iterator[Mapping[str, Any]]:
    job, kafka = load(JobSettings, KafkaSettings)
    return map(asdict, command.until_stopped(backfill(loaded, job, kafka), f"backfilling {loaded.name}"))


def main() -> int:
    """Runs the command; returns the exit code."""
    return command.main("backfill", __doc__, _results)


if __name__ == "__main__":
    end(main())
