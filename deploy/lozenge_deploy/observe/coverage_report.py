"""The coverage of a detector for people: processed intervals, gaps and overlaps."""

from collections.abc import Sequence
from typing import Any

from lozenge.apps import is_stage
from lozenge.contracts.record import parse_offsets
from lozenge.errors import UsageError
from lozenge.kafka.group_offsets import committed
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import read_log
from lozenge.protocol.coverage import CoverageSegment, Interval, covering, gaps, intervals, overlaps


def coverage_of(kafka: KafkaSettings, detector: str) -> list[Interval]:
    """The intervals of `detector`; raises UsageError if it never ran, BrokerUnavailable."""
    if is_stage(detector):
        raise UsageError(
            f"reading the coverage of {detector}: it is a stage of the platform, not a detector",
            hint=f"`lozenge status {detector}` shows its lag",
        )
    lines = read_log(kafka, kafka.topics.detector(detector).coverage, CoverageSegment)
    if not lines:
        raise UsageError(f"reading the coverage of {detector}: it never ran", hint="`lozenge status` lists the apps")
    return intervals(lines, {partition.partition: partition.offset for partition in committed(kafka, detector)})


def raw_coverage(kafka: KafkaSettings, app: str) -> list[tuple[str, list[Interval]]]:
    """The intervals of the normaliser `app` by raw topic; raises UsageError if it never ran, BrokerUnavailable."""
    segments = read_log(kafka, kafka.topics.detector(app).coverage, CoverageSegment)
    if not segments:
        raise UsageError(f"reading the coverage of {app}: it never ran", hint="`lozenge status` lists the apps")
    at = {(p.topic, p.partition): p.offset for p in committed(kafka, app)}
    return [
        (topic, intervals((s for s in segments if s.topic == topic), {p: o for (t, p), o in at.items() if t == topic}))
        for topic in sorted({segment.topic for segment in segments})
    ]


def rows_of(found: Sequence[Interval]) -> list[dict[str, Any]]:
    """One row for each interval, gap and overlap, in the order of partition and offset."""
    kinds = [("processed", found), ("GAP", gaps(found)), ("twice", overlaps(found))]
    rows = [_row(kind, interval) for kind, group in kinds for interval in group if interval.size or interval.open]
    return sorted(rows, key=lambda row: (row["partition"], row["from"], row["to"]))


def gap_rows(found: Sequence[Interval]) -> list[dict[str, Any]]:
    """One row for each gap."""
    return [{"partition": g.partition, "from": g.begin, "to": g.end, "events": g.size} for g in gaps(found)]


def _row(kind: str, interval: Interval) -> dict[str, Any]:
    return {
        "partition": interval.partition,
        "from": interval.begin,
        "to": interval.end,
        "events": interval.size,
        "kind": "open" if interval.open else kind,
        "release": interval.release or None,
        "settings": interval.digest or None,
        "tables": ", ".join(f"{name} {version}" for name, version in interval.tables) or None,
        "generation": interval.generation or None,
    }


def _of(generation: int) -> str:
    return f", generation {generation}" if generation else ""


def explain(found: Sequence[Interval], position: str) -> dict[str, Any]:
    """Whether the event at `position`, such as "2:9120", was processed, and by which release.

    Raises UsageError for a partition that was never processed.
    """
    where = parse_offsets(position)
    ((partition, offset),) = where.items() if len(where) == 1 else ((-1, -1),)
    mine = [i for i in found if i.partition == partition]
    if not mine:
        raise UsageError(f"looking for event {position}: nothing of its partition was processed", hint="such as 2:9120")
    by = covering(mine, partition, offset)
    if by:
        status = " and ".join(f"processed by {i.release}, settings {i.digest}{_of(i.generation)}" for i in by)
    elif offset >= max((i.end for i in mine if i.open), default=mine[-1].end):
        status = "not processed yet"
    elif offset < mine[0].begin:
        status = "not processed: older than every processed event"
    else:
        status = "not processed: in a gap"
    return {"partition": partition, "offset": offset, "status": status, "by": [_row("processed", i) for i in by]}
