"""`python -m lozenge.job.tools.backtest [NAME | FOLDER] --last 1h`: the alerts that a release would have raised.

It reads the retained topic and writes nothing: no alert, no offset, no state. A detector that remembers
is first given as much time again to warm up, of which nothing is told. It also tells what judging costs: the
processor seconds of the whole process tree, without those of starting up. Prints one JSON object; exit codes as
those of the job.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from lozenge.contracts import topics
from lozenge.contracts.avro import Codec
from lozenge.detector.loader import LoadedDetector, find
from lozenge.durations import duration
from lozenge.errors import DetectorError, LozengeError
from lozenge.job.batch_result import BatchResult, joined
from lozenge.job.commit.alert_encoder import AlertEncoder
from lozenge.job.effective_config import JobSpecFile
from lozenge.job.identity import Identity
from lozenge.job.operators.operator import Operator
from lozenge.job.query.poison_search import Ranges, Refusal, find_poison, first_line, refuse_too_many
from lozenge.job.query.query_builder import Plan
from lozenge.job.settings import JobSettings, detector_settings
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.topic_reader import bounds, offsets_at, read
from lozenge.process import logging
from lozenge.process.env_settings import load
from lozenge.process.shutdown import end
from lozenge.process.usage import Meter
from lozenge.spark.session import spark_session

CHUNK = 200_000
"""Offsets that are judged at a time, so that a long trial does not need the memory of all of it."""
FEW = 1000
"""Offsets of each partition that Spark gets warm on."""
PARTITIONS = topics.EVENT_PARTITIONS


@dataclass(frozen=True)
class Told:
    """An alert, as far as two releases can be compared by it."""

    alert_id: str
    entity: str
    event_time: str
    reason: str


@dataclass(frozen=True)
class Outcome:
    """What `detector` as it is now tells of `events`, beside what its live `release` told; ids decide.

    `cpu_seconds` is what judging took of `judged` events, those of warming up among them.
    """

    detector: str
    release: str | None
    since: str
    events: int
    alerts: int
    same: int
    new: list[Told]
    lost: list[Told]
    dead_letters: list[str]
    judged: int
    cpu_seconds: float


def trial(loaded: LoadedDetector, job: JobSettings, kafka: KafkaSettings, last: timedelta) -> Outcome:
    """Judges what was written within `last`; raises as a job's start does."""
    declaration, settings = loaded.declaration, detector_settings(loaded, JobSpecFile(job).current.settings)
    identity = Identity(loaded.name, "trial", live=False, key=declaration.key)
    until = datetime.now(UTC)
    since = until - last
    starts = offsets_at(kafka, identity.input, PARTITIONS, since)
    warm = starts if declaration.kind == "rule" else offsets_at(kafka, identity.input, PARTITIONS, since - last)
    ends = {partition: end for partition, (_, end) in bounds(kafka, identity.input, PARTITIONS).items()}
    spark = spark_session(f"{loaded.name}-trial", cores=os.cpu_count() or 1, memory_mb=1024)
    writer = AlertEncoder(identity, declaration, settings)
    ranges = {partition: (warm[partition], ends[partition]) for partition in ends if ends[partition] > warm[partition]}
    plan = Plan(loaded, identity, settings, kafka, spark)
    plan.learn()
    _start_up(plan, ranges)
    meter = Meter()
    before = meter.read()
    judged = judge(plan, declaration.kind, ranges)
    cost = meter.read().cpu_seconds - before.cpu_seconds

    def counts(trigger: tuple[int, int] | None, at: datetime) -> bool:
        if trigger is None:
            return since <= at < until
        partition, offset = trigger
        return starts[partition] <= offset < ends[partition]  # the live release goes on meanwhile

    found = {
        (alert_id := writer.alert_id(f)): Told(alert_id, f.entity, f.event_time.isoformat(), f.alert.reason)
        for f in judged.alerts
        if counts(f.trigger, f.event_time)
    }
    live, releases = {}, []
    for alert in _live(kafka, loaded.name, since):
        place = alert["trigger"]
        if counts((place["partition"], place["offset"]) if place else None, alert["event_time"]):
            told = Told(alert["alert_id"], alert["entity"]["id"], alert["event_time"].isoformat(), alert["reason"])
            live[told.alert_id] = told
            releases.append(alert["release"])
    return Outcome(
        detector=loaded.name,
        release=releases[-1] if releases else None,
        since=since.isoformat(timespec="seconds"),
        events=sum(ends[p] - starts[p] for p in ends),
        alerts=len(found),
        same=len(found.keys() & live.keys()),
        new=[told for alert_id, told in found.items() if alert_id not in live],
        lost=[told for alert_id, told in live.items() if alert_id not in found],
        dead_letters=[str(failure.error) for failure in judged.failures],
        judged=sum(end - start for start, end in ranges.values()),
        cpu_seconds=round(cost, 2),
    )


def _start_up(plan: Plan, ranges: Ranges) -> None:
    """Lets Spark plan and compile once, and start its workers, so that their price is not that of the events."""
    few = {partition: (start, min(start + FEW, end)) for partition, (start, end) in ranges.items()}
    with suppress(Exception):  # whatever fails on these will fail again where it is looked into
        plan.bounded_operator(few, PARTITIONS).frame().toArrow()


def judge(plan: Plan, kind: str, ranges: Ranges, refuse: Refusal = refuse_too_many) -> BatchResult:
    """What a detector makes of `ranges` from an empty memory on.

    An aggregate is evaluated over all of them at once and without a watermark: it tells every crossing. Raises
    DetectorError where `refuse` finds that too much fails.
    """
    parts: list[BatchResult] = []
    first: Operator | None = None
    for part in chunks(ranges, sys.maxsize if kind == "aggregate" else CHUNK):
        operator = plan.bounded_operator(part, PARTITIONS)
        try:
            batch = operator.frame().toArrow()
        except LozengeError:
            raise
        except Exception as error:  # whatever the author's code or Spark raises
            if not (found := find_poison(part, plan.evaluate, refuse)):
                raise DetectorError(
                    f"judging retained events: they fail together, though none fails alone: {first_line(error)}",
                    hint="try again; if it comes back, the detector's own tests may show why",
                ) from error
            for record in found:
                plan.exclude(record)
            batch = plan.bounded_operator(part, PARTITIONS).frame().toArrow()
        first = first or operator  # it holds the memory
        parts.append(first.process(batch))
    return joined(parts, plan.excluded)


def chunks(ranges: Ranges, size: int) -> Iterator[Ranges]:
    """`ranges` in order, at most about `size` offsets of all partitions at a time."""
    left = dict(ranges)
    step = max(1, size // max(1, len(ranges)))
    while left:
        yield {p: (start, min(start + step, end)) for p, (start, end) in left.items()}
        left = {p: (start + step, end) for p, (start, end) in left.items() if start + step < end}


def _live(kafka: KafkaSettings, detector: str, since: datetime) -> Iterator[Mapping[str, Any]]:
    """What the live release has told; none if it has never been deployed."""
    topic = topics.alerts(detector)
    if topic not in partitions(kafka):
        return
    codec = Codec.of("alert")
    for message in read(kafka, topic, offsets_at(kafka, topic, PARTITIONS, since)):
        yield codec.decode(message.value())


def main() -> int:
    """Prints the outcome; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lozenge.job.tools.backtest", description=__doc__)
    parser.add_argument("which", nargs="?")
    parser.add_argument("--last", type=duration, default=timedelta(hours=1))
    given = parser.parse_args()
    logging.configure("trial")
    try:
        job, kafka = load(JobSettings, KafkaSettings)
        loaded = find(given.which)
        outcome = trial(loaded, job, kafka, given.last)
    except LozengeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(json.dumps(asdict(outcome)))
    return 0


if __name__ == "__main__":
    end(main())
