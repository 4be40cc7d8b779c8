"""`python -m lozenge.job.tools.backtest [NAME | FOLDER] --last 1h`: the alerts that a release would have emitted.

It reads the retained topic and writes nothing: no alert, no offset, no state. A detector with state first reads as much
time before that, to build its state; alerts of that time are dropped. The result also has the cost: the processor
seconds of the whole process tree, without those of the start. Prints one JSON object. Exit codes are those of the job.
"""

import argparse
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil

from lozenge.contracts.avro import Codec
from lozenge.contracts.detector_kind import DetectorKind
from lozenge.detector.loader import LoadedDetector
from lozenge.durations import duration
from lozenge.host.tool_host import tool_session
from lozenge.job.effective_config import JobSpecFile
from lozenge.job.identity import Identity
from lozenge.job.query.event_reader import EventReader
from lozenge.job.query.poison_search import Ranges
from lozenge.job.query.query_builder import QueryBuilder
from lozenge.job.query.range_evaluator import CHUNK_OFFSETS, chunks, evaluate, size
from lozenge.job.settings import JobSettings, detector_settings
from lozenge.job.tools import command
from lozenge.job.tools.recorded_tables import RecordedTables
from lozenge.kafka.schema_registry import settle_ids
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.topic_reader import bounds, offsets_at, read_since, write_times
from lozenge.process.env_settings import load
from lozenge.process.shutdown import end
from lozenge.process.usage import Meter
from lozenge.spark.internals.driver_jvm import jvm_pid

WARM_UP_OFFSETS = 1000
"""Offsets of each partition that are evaluated before the cost is measured."""


@dataclass(frozen=True)
class AlertSummary:
    """The part of an alert by which two releases are compared."""

    alert_id: str
    entity: str
    event_time: str
    reason: str


@dataclass(frozen=True)
class BacktestResult:
    """The alerts of the present code over `events`, compared by alert id with those of the live `release`.

    `since` is the moment from which events were to be compared. `oldest` is when the oldest retained event was written,
    if `since` lies before it. `processed` counts the events that were read, also those before `since`. `cpu_seconds` is
    what they cost, and what other tools on the same Spark host did meanwhile. `notes` say which reference lists could
    not be read as they were.
    """

    detector: str
    release: str | None
    since: str
    oldest: str | None
    events: int
    alerts: int
    same: int
    new: list[AlertSummary]
    lost: list[AlertSummary]
    dead_letters: list[str]
    processed: int
    cpu_seconds: float
    notes: list[str]


def backtest(loaded: LoadedDetector, job: JobSettings, kafka: KafkaSettings, last: timedelta) -> BacktestResult:
    """Processes the events that were written within `last`; raises what the start of a job raises."""
    settle_ids(kafka, ())
    declaration, settings = loaded.declaration, detector_settings(loaded, JobSpecFile(job).current.settings)
    identity = Identity(loaded.name, "backtest", live=False, key=loaded.key, topics=kafka.topics, stream=loaded.stream)
    until = datetime.now(UTC)
    since = until - last
    starts = offsets_at(kafka, identity.input, kafka.partitions, since)
    first = starts if declaration.stateless else offsets_at(kafka, identity.input, kafka.partitions, since - last)
    retained = bounds(kafka, identity.input, kafka.partitions)
    ends = {partition: end for partition, (_, end) in retained.items()}
    ranges = {
        partition: (first[partition], ends[partition]) for partition in ends if ends[partition] > first[partition]
    }
    spark = tool_session(f"{loaded.name}-backtest")
    tables = RecordedTables(kafka, loaded)
    builder = QueryBuilder(loaded, identity, settings, EventReader(identity, declaration, kafka, spark), tables.now)
    builder.events.learn()
    _warm_up(builder, ranges, kafka.partitions)
    meter = Meter(psutil.Process(), psutil.Process(jvm_pid(spark)))  # a shared JVM is no child of this process
    before = meter.read()
    parts = _as_recorded(builder, declaration.kind, tables, ranges)
    result = evaluate(builder, declaration.kind, ranges, kafka.partitions, parts=parts)
    cost = meter.read().cpu_seconds - before.cpu_seconds

    def is_compared(trigger: tuple[int, int] | None, at: datetime) -> bool:
        if trigger is None:
            return since <= at < until
        partition, offset = trigger
        return starts[partition] <= offset < ends[partition]  # the live release continues during the backtest

    found: dict[str, AlertSummary] = {}
    for draft in result.alerts:
        if is_compared(draft.trigger, draft.event_time):
            alert_id = identity.alert_id(draft.entity, draft.dedup_key)
            found[alert_id] = AlertSummary(alert_id, draft.entity, draft.event_time.isoformat(), draft.alert.reason)
    live: dict[str, AlertSummary] = {}
    release: str | None = None
    for alert in _live_alerts(kafka, loaded.name, since):
        trigger = alert["trigger"]
        if is_compared((trigger["partition"], trigger["offset"]) if trigger else None, alert["event_time"]):
            alert_id, release = alert["alert_id"], alert["release"]
            at = alert["event_time"].isoformat()
            live[alert_id] = AlertSummary(alert_id, alert["entity"]["id"], at, alert["reason"])
    return BacktestResult(
        detector=loaded.name,
        release=release,
        since=since.isoformat(timespec="seconds"),
        oldest=_oldest(kafka, identity.input, starts) if all(starts[p] <= retained[p][0] for p in ends) else None,
        events=sum(ends[p] - starts[p] for p in ends),
        alerts=len(found),
        same=len(found.keys() & live.keys()),
        new=[alert for alert_id, alert in found.items() if alert_id not in live],
        lost=[alert for alert_id, alert in live.items() if alert_id not in found],
        dead_letters=[str(failure.error) for failure in result.failures],
        processed=size(ranges),
        cpu_seconds=round(cost, 2),
        notes=tables.notes,
    )


def _as_recorded(
    builder: QueryBuilder, kind: DetectorKind, tables: RecordedTables, ranges: Ranges
) -> Iterator[Ranges] | None:
    """All of `ranges` in parts; before each, the builder gets lists and tables as they were for its events.

    None where all events have them as they are now: where there are none, and where Spark counts, which takes all
    events at once.
    """
    if not tables.topics:
        return None
    if kind.state_in_checkpoint:
        tables.notes.append("an aggregate is evaluated with its lists as they are now, not as they were for each event")
        return None
    return _in_order(builder, tables, ranges)


def _in_order(builder: QueryBuilder, tables: RecordedTables, ranges: Ranges) -> Iterator[Ranges]:
    for builder.tables, part in tables.parts(ranges):
        yield from chunks(part, CHUNK_OFFSETS)


def _oldest(kafka: KafkaSettings, topic: str, starts: Mapping[int, int]) -> str | None:
    """When the oldest event from `starts` on was written; None without any."""
    written = write_times(kafka, topic, starts).values()
    return datetime.fromtimestamp(min(written), UTC).isoformat(timespec="seconds") if written else None


def _warm_up(builder: QueryBuilder, ranges: Ranges, partitions: int) -> None:
    """Lets Spark plan and compile once and start its workers, so that the cost is that of the events."""
    few = {partition: (start, min(start + WARM_UP_OFFSETS, end)) for partition, (start, end) in ranges.items()}
    with suppress(Exception):  # a failure here occurs again in the evaluation, which handles it
        builder.bounded_operator(few, partitions).frame().toArrow()


def _live_alerts(kafka: KafkaSettings, detector: str, since: datetime) -> Iterator[Mapping[str, Any]]:
    """The alerts that the live release has published; none if it has never been deployed."""
    topic = kafka.topics.detector(detector).alerts
    if topic not in partitions(kafka):
        return
    codec = Codec.of("alert")
    for message in read_since(kafka, topic, kafka.partitions, since):
        yield codec.decode(message.value())


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--last", type=duration, default=timedelta(hours=1))


def _results(loaded: LoadedDetector, given: argparse.Namespace) -> Iterator[Mapping[str, Any]]:
    job, kafka = load(JobSettings, KafkaSettings)
    yield asdict(backtest(loaded, job, kafka, given.last))


def main() -> int:
    """Runs the command; returns the exit code."""
    return command.main("backtest", __doc__, _results, _arguments)


if __name__ == "__main__":
    end(main())
