"""`python -m lozenge.job.tools.backfill [NAME | FOLDER]`: judges what nobody judged, beside the job that runs.

Every step is one transaction: alerts, dead letters, and the line of coverage that says that these events are judged
now. So a fill that is killed is simply run again, and of two at once the later one goes on. Alerts have the ids that
the live job would have given them. Prints one JSON object for each step; ends between two of them when it is told to.
Exit codes as those of the job.

Only for what remembers nothing: what a fold or an aggregate makes of an event depends on those before it.
"""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from lozenge.contracts import topics
from lozenge.detector.loader import LoadedDetector, find
from lozenge.errors import LozengeError, UsageError
from lozenge.job.batch_result import BatchResult
from lozenge.job.commit.alert_encoder import AlertEncoder
from lozenge.job.commit.dead_letter_encoder import dead_letters
from lozenge.job.effective_config import JobSpecFile
from lozenge.job.identity import Identity
from lozenge.job.query.poison_search import Ranges
from lozenge.job.query.query_builder import Plan
from lozenge.job.settings import JobSettings, detector_settings
from lozenge.job.tools.backtest import chunks, judge
from lozenge.job.tools.command import tell
from lozenge.kafka.group_offsets import Group
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import topic_id
from lozenge.kafka.topic_reader import bounds, read_log
from lozenge.kafka.writers import TransactionalWriter
from lozenge.process import logging
from lozenge.process.env_settings import load
from lozenge.process.shutdown import end
from lozenge.protocol.coverage import BACKFILLED, CoverageSegment, Interval, gaps, intervals
from lozenge.spark.session import spark_session

STEP = 50_000
"""Offsets that are judged and committed at a time: what a kill makes a fill judge again at most."""
PARTITIONS = topics.EVENT_PARTITIONS
Which = Callable[[list[CoverageSegment], list[Interval]], list[Interval]]
"""Some of the gaps, from the lines of a coverage and its intervals."""


@dataclass(frozen=True)
class Step:
    """What one transaction has told; `left` offsets are still to be judged, and `gone` ones never can be."""

    events: int
    alerts: int
    dead_letters: int
    left: int
    gone: int


def fill(
    loaded: LoadedDetector,
    job: JobSettings,
    kafka: KafkaSettings,
    which: Which = lambda _, covered: gaps(covered),
    spark: SparkSession | None = None,
) -> Iterator[Step]:
    """Judges every gap of its coverage, or `which` of them, the oldest offsets of each partition first.

    Without a session it begins one once there is something to judge. Raises as a job's start does.
    """
    declaration = loaded.declaration
    if declaration.kind not in ("rule", "model"):
        raise UsageError(
            f"filling the gaps of {loaded.name}: what a {declaration.kind} tells depends on what it remembers",
            hint=f"`lozenge offsets {loaded.name} --to ... --state rebuild` lets it judge them again in their order",
        )
    settings = detector_settings(loaded, JobSpecFile(job).current.settings)
    identity = Identity(loaded.name, job.release, live=True, key=declaration.key)
    writer = TransactionalWriter(kafka, f"{loaded.name}@fill")
    writer.fence()  # before it looks: what another one fills is committed, or never will be
    ranges, gone = _gaps(kafka, identity, which)
    left = _size(ranges)
    if gone and not ranges:
        yield Step(0, 0, 0, 0, gone)
    alerts = AlertEncoder(identity, declaration, settings)
    while ranges:
        spark = spark or spark_session(f"{loaded.name}-fill", cores=os.cpu_count() or 1, memory_mb=1024)
        for part in chunks(ranges, STEP):
            plan = Plan(loaded, identity, settings, kafka, spark)
            plan.learn()
            judged = judge(plan, declaration.kind, part)
            _commit(kafka, identity, writer, alerts, judged, part, settings.digest)
            events = _size(part)
            left -= events
            yield Step(events, len(judged.alerts), len(judged.failures), left, gone)
        ranges, gone = _gaps(kafka, identity, which)
        left = _size(ranges)


def _size(ranges: Ranges) -> int:
    return sum(end - begin for begin, end in ranges.values())


def _gaps(kafka: KafkaSettings, identity: Identity, which: Which) -> tuple[Ranges, int]:
    """The first gap of each partition, as far as it is retained, and how many offsets of all gaps are not."""
    assert identity.coverage is not None
    group = Group(kafka, identity.app, identity.input, PARTITIONS)
    committed = group.glance().offsets
    group.close()
    earliest = {p: low for p, (low, _) in bounds(kafka, identity.input, PARTITIONS).items()}
    first: Ranges = {}
    gone = 0
    lines = read_log(kafka, identity.coverage, CoverageSegment)
    for gap in which(lines, intervals(lines, committed)):
        begin = max(gap.begin, min(gap.end, earliest[gap.partition]))
        gone += begin - gap.begin
        if begin < gap.end:
            first.setdefault(gap.partition, (begin, gap.end))
    return first, gone


def _commit(
    kafka: KafkaSettings,
    identity: Identity,
    writer: TransactionalWriter,
    alerts: AlertEncoder,
    judged: BatchResult,
    part: Ranges,
    digest: str,
) -> None:
    assert identity.coverage is not None
    now = datetime.now(UTC)
    line = CoverageSegment(
        reason=BACKFILLED,
        release=identity.release,
        digest=digest,
        generation=0,
        ended={},
        since={p: begin for p, (begin, _) in part.items()},
        until={p: end for p, (_, end) in part.items()},
        input_id=topic_id(kafka, identity.input),
    )
    writer.write(
        [
            *(alerts.record(draft, now) for draft in judged.alerts),
            *dead_letters(kafka, identity, judged),
            line.record(identity.coverage),
        ]
    )


def main() -> int:
    """Prints a line for each step; the exit code."""
    logging.configure("fill")
    try:
        job, kafka = load(JobSettings, KafkaSettings)
        loaded = find(sys.argv[1] if len(sys.argv) > 1 else None)
        tell(fill(loaded, job, kafka), f"filling the gaps of {loaded.name}")
    except LozengeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    end(main())
