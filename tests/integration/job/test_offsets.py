"""A detector's offsets: every move is requested, recorded in its coverage, and can be undone."""

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge import Detector, Settings, Tables, alert
from lozenge.contracts.record import format_positions
from lozenge.detector.loader import LoadedDetector
from lozenge.errors import OffsetsLost, UsageError
from lozenge.job.lifecycle.backfill_worker import BackfillWorker
from lozenge.job.settings import JobSettings
from lozenge.job.tools import backfill as backfill_command
from lozenge.job.tools import command
from lozenge.job.tools.backfill import backfill
from lozenge.kafka.dead_letter_queue import unresolved
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import read_log
from lozenge.metrics.app_metrics import JobMetrics
from lozenge.protocol.coverage import BACKFILLED, OFFSETS_RESET, CoverageSegment, Interval, gaps, intervals, overlaps
from lozenge_deploy.observe.coverage_report import coverage_of, explain
from lozenge_deploy.observe.dead_letter_report import dead_letter_of_event
from lozenge_deploy.operations import offset_reset
from lozenge_deploy.operations.offset_reset import OffsetReset
from tests.integration import clients
from tests.integration.harness import alerts, event, group_offsets, move, new_detector, running, send, wait_for

pytestmark = pytest.mark.integration

Process = Callable[..., None]
_numbers = count(5 * 10**9)


class Limit(Settings):
    limit: float = 100.0


def over(events: DataFrame, settings: Limit, tables: Tables) -> DataFrame:
    return events.where(F.col("amount") > settings.limit).select(*alert(reason=F.lit("over")))


@pytest.fixture
def over_limit(kafka: KafkaSettings, tmp_path: Path) -> LoadedDetector:
    return new_detector(kafka, Detector(over, Limit), tmp_path)


def large(kafka: KafkaSettings, number: int) -> set[str]:
    """Sends so many events that raise an alert, over all partitions; their ids."""
    sent = [event(n, f"card_{n % 16}", "900.00") for n in islice(_numbers, number)]
    send(kafka, sent)
    return {e["event_id"] for e in sent}


def emitted(kafka: KafkaSettings, detector: str) -> Counter[str]:
    """How often each event was alerted on."""
    return Counter(a["evidence"]["event_ids"][0] for a in alerts(kafka, detector))


def now(kafka: KafkaSettings, detector: str) -> dict[int, int]:
    """Where it is committed."""
    return {partition: offset for partition, (offset, _) in group_offsets(kafka, detector).items()}


def ends(kafka: KafkaSettings) -> dict[int, int]:
    """Where the events end."""
    return clients.ends(kafka, kafka.topics.events("auth"))


def to(kafka: KafkaSettings, detector: str, then: dict[int, int]) -> None:
    """Moves it as `lozenge offsets` does."""
    offset_reset.commit(
        kafka, OffsetReset(detector, kafka.topics.events("auth"), now(kafka, detector), then, "keep", None)
    )


@pytest.fixture
def process(kafka: KafkaSettings, spark: SparkSession, tmp_path: Path) -> Callable[..., None]:
    """Runs a detector until the group's offsets, as others see them, are at the end of all events."""
    generations = count(1)

    def process(loaded: LoadedDetector, release: str = "r1", **job: Any) -> None:
        generation = max(next(generations), job.pop("at_least", 0))
        with running(loaded, kafka, spark, tmp_path, release=release, generation=generation, **job) as job_:
            ended = lambda: job_.runner.offsets == now(kafka, loaded.name) == ends(kafka)  # noqa: E731
            wait_for(ended, f"{loaded.name} at the end")

    return process


def test_releases_and_settings_follow_each_other_in_its_coverage(
    kafka: KafkaSettings, over_limit: LoadedDetector, process: Process
) -> None:
    begin = ends(kafka)
    large(kafka, 8)
    process(over_limit)
    middle = now(kafka, over_limit.name)
    large(kafka, 8)
    process(over_limit, "r2", settings='{"limit": 250}')
    end = now(kafka, over_limit.name)
    found = coverage_of(kafka, over_limit.name)
    assert [(i.partition, i.begin, i.end, i.release, i.open) for i in found] == [
        row
        for p in sorted(begin)
        for row in ((p, begin[p], middle[p], "r1", False), (p, middle[p], end[p], "r2", True))
    ]
    assert len({i.digest for i in found}) == 2
    assert explain(found, f"0:{middle[0]}")["by"][0]["release"] == "r2"
    assert explain(found, f"0:{end[0]}")["status"] == "not processed yet"


def test_moved_back_it_reprocesses_under_the_same_ids(
    kafka: KafkaSettings, over_limit: LoadedDetector, process: Process
) -> None:
    begin, ids = ends(kafka), large(kafka, 12)
    process(over_limit)
    middle = now(kafka, over_limit.name)
    to(kafka, over_limit.name, begin)
    process(over_limit, at_least=9)
    assert emitted(kafka, over_limit.name) == dict.fromkeys(ids, 2)
    assert len({a["alert_id"] for a in alerts(kafka, over_limit.name)}) == len(ids)
    assert overlaps(coverage_of(kafka, over_limit.name)) == [Interval(p, begin[p], middle[p]) for p in sorted(begin)]


def test_a_move_leaves_the_partitions_that_it_does_not_name(
    kafka: KafkaSettings, over_limit: LoadedDetector, process: Process
) -> None:
    begin, _ = ends(kafka), large(kafka, 16)
    process(over_limit)
    requested = OffsetReset(
        over_limit.name, kafka.topics.events("auth"), now(kafka, over_limit.name), {0: begin[0]}, "keep", None
    )
    large(kafka, 16)
    process(over_limit)
    offset_reset.commit(kafka, requested)
    moved = {**ends(kafka), 0: begin[0]}
    wait_for(lambda: now(kafka, over_limit.name) == moved, "the transaction that has moved it")


def test_a_gap_is_backfilled_once_also_after_an_interrupted_backfill(
    kafka: KafkaSettings, over_limit: LoadedDetector, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = over_limit.name
    processed = large(kafka, 8)
    process(over_limit)
    begin, skipped = now(kafka, name), large(kafka, 40)
    send(kafka, [event(next(_numbers), "card_1", "5.00"), b"no Avro at all"])
    to(kafka, name, ends(kafka))
    processed |= large(kafka, 8)
    process(over_limit, at_least=9)
    assert emitted(kafka, name) == dict.fromkeys(processed, 1)
    assert gaps(coverage_of(kafka, name)) == [Interval(p, begin[p], o) for p, o in sorted(_moved(kafka, name).items())]

    monkeypatch.setattr(backfill_command, "STEP_OFFSETS", 16)
    settings = JobSettings(release="r1")
    first = next(backfill(over_limit, settings, kafka))
    assert first.remaining > 0
    rest = list(backfill(over_limit, settings, kafka))
    assert rest[-1].remaining == 0
    assert first.dead_letters + sum(step.dead_letters for step in rest) == 1
    assert emitted(kafka, name) == dict.fromkeys(processed | skipped, 1)
    assert not gaps(coverage_of(kafka, name))
    assert list(backfill(over_limit, settings, kafka)) == []
    (dead_letter,) = unresolved(kafka, name)
    said = f"dead letter {format_positions([dead_letter.position])} (unresolved)"
    assert [dead_letter_of_event(kafka, name, place) for place in (dead_letter.origin, (0, 0))] == [said, ""]


def _moved(kafka: KafkaSettings, detector: str) -> dict[int, int]:
    return next(
        line.since
        for line in read_log(kafka, kafka.topics.detector(detector).coverage, CoverageSegment)
        if line.reason == OFFSETS_RESET
    )


def test_a_backfill_that_is_asked_to_stop_does_so_between_two_steps(
    kafka: KafkaSettings, over_limit: LoadedDetector, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process(over_limit)
    skipped = large(kafka, 40)
    to(kafka, over_limit.name, ends(kafka))
    process(over_limit, at_least=9)
    monkeypatch.setattr(backfill_command, "STEP_OFFSETS", 16)
    monkeypatch.setattr(command, "find", lambda _: over_limit)
    monkeypatch.setattr(sys, "argv", ["backfill"])
    for variable, value in kafka.variables.items():
        monkeypatch.setenv(variable, value)

    def stopping(*given: Any) -> Iterator[backfill_command.BackfillStep]:
        for step in backfill(*given):
            os.kill(os.getpid(), signal.SIGTERM)
            yield step

    monkeypatch.setattr(backfill_command, "backfill", stopping)
    assert backfill_command.main() == 0
    filled = emitted(kafka, over_limit.name)
    assert 0 < len(filled) < len(skipped)
    assert sum(gap.size for gap in gaps(coverage_of(kafka, over_limit.name))) == len(skipped) - len(filled)


def test_newest_first_processes_new_events_and_concurrently_the_backlog_once(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = new_detector(kafka, Detector(over, Limit), tmp_path, backlog="newest-first", max_batch=20)
    processed = large(kafka, 8)
    process(loaded)
    before = now(kafka, loaded.name)
    processed |= large(kafka, 60)
    monkeypatch.setattr(backfill_command, "STEP_OFFSETS", 16)

    def steps() -> list[CoverageSegment]:
        return [
            line
            for line in read_log(kafka, kafka.topics.detector(loaded.name).coverage, CoverageSegment)
            if line.reason == BACKFILLED
        ]

    end = ends(kafka)
    with running(loaded, kafka, spark, tmp_path, generation=5):
        wait_for(steps, "a step of the backfill")
    coverage = read_log(kafka, kafka.topics.detector(loaded.name).coverage, CoverageSegment)
    start = next(line for line in coverage if line.generation == 5)
    assert (start.ended, start.since) == (before, end)
    assert gaps(coverage_of(kafka, loaded.name)), "the first process did not end in the middle"
    worker = BackfillWorker(loaded, JobSettings(release="r1"), kafka, spark, JobMetrics(loaded.name))
    worker.start()  # as a job does that shares its partitions for a while
    worker.stop()
    worker.start()
    worker.stop()
    with running(loaded, kafka, spark, tmp_path, generation=6):
        processed |= large(kafka, 8)
        wait_for(lambda: emitted(kafka, loaded.name).keys() == processed, "all alerts")
        wait_for(lambda: not gaps(coverage_of(kafka, loaded.name)), "the end of the backfill")
    assert emitted(kafka, loaded.name) == dict.fromkeys(processed, 1)


def test_a_detector_with_state_is_not_backfilled(kafka: KafkaSettings, tmp_path: Path) -> None:
    loaded = new_detector(kafka, Detector(over, Limit), tmp_path, kind="stateful")
    with pytest.raises(UsageError, match="the alerts of a stateful detector depend on its state"):
        next(backfill(loaded, JobSettings(), kafka))


def test_a_group_that_lost_its_offsets_does_not_start_from_scratch(
    kafka: KafkaSettings, over_limit: LoadedDetector, process: Process
) -> None:
    ids = large(kafka, 8)
    process(over_limit)
    last = read_log(kafka, kafka.topics.detector(over_limit.name).coverage, CoverageSegment)[-1].since
    group = kafka.topics.prefixed(over_limit.name)
    clients.clients(kafka).admin.delete_consumer_groups([group])[group].result(30)
    with pytest.raises(
        OffsetsLost, match=f"partition 2: the committed offset has expired; the last known one is {last[2]}"
    ):
        process(over_limit)
    assert emitted(kafka, over_limit.name) == dict.fromkeys(ids, 1)
    offset_reset.commit(
        kafka, OffsetReset(over_limit.name, kafka.topics.events("auth"), last, ends(kafka), "keep", None)
    )
    process(over_limit, at_least=9)
    # nobody knows how far it had come: its coverage promises no more than what is sure
    coverage = read_log(kafka, kafka.topics.detector(over_limit.name).coverage, CoverageSegment)
    assert intervals(coverage, ends(kafka))[0].begin >= last[0]


def test_offsets_after_the_end_of_the_topic_are_refused(
    kafka: KafkaSettings, over_limit: LoadedDetector, process: Process
) -> None:
    end = ends(kafka)
    move(kafka, over_limit.name, {**end, 3: end[3] + 1000})
    with pytest.raises(OffsetsLost, match=f"partition 3: {end[3] + 1000} is next, but the topic ends at {end[3]}"):
        process(over_limit)
