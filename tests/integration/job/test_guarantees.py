"""Three guarantees, three verdicts: what becomes of a batch's alerts if its job dies, or sleeps, at each step of it."""

import itertools
import threading
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge import Detector, Settings, Tables, alert
from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.record import Record
from lozenge.detector.events import Alert
from lozenge.detector.loader import LoadedDetector
from lozenge.errors import BrokerUnavailable, Fenced
from lozenge.job.batch_result import BatchResult, DraftAlert
from lozenge.job.commit import delivery_guarantees
from lozenge.job.commit.alert_encoder import AlertEncoder
from lozenge.job.commit.claim import Claims
from lozenge.job.commit.live_committer import BatchCommit, LiveCommitter
from lozenge.job.identity import Identity
from lozenge.job.lifecycle.job_loop import JobLoop
from lozenge.job.lifecycle.job_parts import Happened, JobParts
from lozenge.job.lifecycle.job_state import JobAction
from lozenge.job.settings import JobSettings
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import read_log
from lozenge.kafka.writers import TransactionalWriter
from lozenge.metrics.app_metrics import JobMetrics
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.protocol.coverage import CoverageSegment, Versions, gaps
from lozenge_deploy.observe.coverage_report import coverage_of
from tests.integration import clients
from tests.integration.harness import (
    NOW,
    Crash,
    Running,
    alerts,
    event,
    group_offsets,
    new_detector,
    running,
    wait_for,
)
from tests.integration.job.sparkless import parts_of
from tests.integration.job.traffic import counting, minutes
from tests.streams import event_codec

pytestmark = pytest.mark.integration

EVENTS = 12
"""In one batch; they make as many alerts, of an aggregate a third of it."""
BEFORE, BETWEEN, AFTER = STEPS = "before it writes", "between alerts and offsets", "after both"
TIMES_EMITTED = {
    "exactly-once": {BEFORE: 1, BETWEEN: 1, AFTER: 1},
    "at-least-once": {BEFORE: 1, BETWEEN: 2, AFTER: 1},
    "at-most-once": {BEFORE: 0, BETWEEN: 0, AFTER: 1},
}
_numbers = itertools.count(7 * 10**9)


def every_event(events: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
    return events.select(*alert(reason=F.col("event_id")))


KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "rule": (every_event, {}),
    "stateful": (counting, {}),
    "aggregate": (minutes, {"lateness": "10m", "window": "1m"}),
}


class Halting(JobLoop):
    """Once it is `armed`, it comes to `halt` at `step` of its next batch with events."""

    step = BEFORE
    armed = False

    def halt(self) -> None:
        raise Crash("killed here")

    def _perform(self, action: JobAction, happened: Happened) -> Happened | None:
        batch, run = happened.about, self.current.run
        if action not in (JobAction.ADMIT, JobAction.ACCEPT) or not self.armed or run is None or batch.ends == run.read:
            return super()._perform(action, happened)
        if action is JobAction.ADMIT and self.step == BEFORE:
            self.halt()
        if action is JobAction.ACCEPT and self.step == BETWEEN:
            self._halt_between()
        following = super()._perform(action, happened)
        if action is JobAction.ACCEPT and self.step == AFTER:
            self.halt()
        return following

    def _halt_between(self) -> None:
        """Halts where the second of the two is written, or, where they are one, at its commit."""
        writers: Any = self.parts.claims.writers
        [(writer, _)] = writers.each()
        owner, name = {
            "exactly-once": (writer, "_retrying"),
            "at-least-once": (writer, "commit"),
            "at-most-once": (writers.acknowledged, "write"),
        }[self.parts.declaration.guarantee]
        written = getattr(owner, name)

        def halted(*given: Any, **named: Any) -> None:
            self.halt()
            written(*given, **named)

        setattr(owner, name, halted)


def send_a_batch(kafka: KafkaSettings, card: str, hour: int) -> None:
    """Sends events of one card in one transaction, so that no two batches share them."""
    writer, codec, key = TransactionalWriter(kafka, f"{card}-feed"), event_codec(), card.encode()
    sent = [event(next(_numbers), card, at=timedelta(hours=hour, seconds=20 * n)) for n in range(EVENTS)]
    partition = partition_of(key, kafka.topics.partitions)
    writer.fence()
    writer.write([Record(kafka.topics.events("auth"), partition, key, codec.encode(e)) for e in sent])


def caught_up(kafka: KafkaSettings, run: Running) -> None:
    """Waits until it has decided all events that there are: what is sent from now on is a batch of its own."""
    ends = clients.ends(kafka, kafka.topics.events("auth"))
    wait_for(lambda: run.runner.offsets == ends, "the end of the events")


def emitted(kafka: KafkaSettings, loaded: LoadedDetector, hour: int) -> list[dict[str, Any]]:
    """The alerts about the batch of one hour."""
    return [
        a
        for a in alerts(kafka, loaded.name)
        if a["entity"]["id"] == loaded.name and (a["event_time"] - NOW) // timedelta(hours=1) == hour
    ]


def times_emitted(found: Sequence[dict[str, Any]]) -> dict[int, int]:
    """How many alerts came how often, by id."""
    return dict(Counter(Counter(a["alert_id"] for a in found).values()))


@pytest.mark.parametrize("kind", ["rule", "stateful"])
@pytest.mark.parametrize("guarantee", TIMES_EMITTED)
def test_a_crash_at_any_step_costs_what_the_guarantee_says_and_nothing_else(
    guarantee: str, kind: str, kafka: KafkaSettings, tmp_path: Path
) -> None:
    crash_at_every_step(guarantee, kind, kafka, None, tmp_path)


def test_a_crash_of_an_aggregate_at_any_step_loses_and_doubles_nothing(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    crash_at_every_step("exactly-once", "aggregate", kafka, spark, tmp_path)


def crash_at_every_step(
    guarantee: str, kind: str, kafka: KafkaSettings, spark: SparkSession | None, tmp_path: Path
) -> None:
    """A job dies at each step of a batch, and the next one starts."""
    detect, declared = KINDS[kind]
    loaded = new_detector(
        kafka, Detector(detect, settings=Settings), tmp_path, kind=kind, guarantee=guarantee, **declared
    )
    last, raised = len(STEPS), EVENTS if kind != "aggregate" else EVENTS // 3
    for hour, step in enumerate(STEPS):
        _die(step, loaded, kafka, spark, tmp_path, hour)
    with running(loaded, kafka, spark, tmp_path, generation=last + 1) as run:
        caught_up(kafka, run)
        send_a_batch(kafka, loaded.name, last)
        wait_for(lambda: len(emitted(kafka, loaded, last)) >= raised, "the alerts of the last batch")
    expected = {hour: TIMES_EMITTED[guarantee][step] for hour, step in enumerate(STEPS)} | {last: 1}
    assert {hour: times_emitted(emitted(kafka, loaded, hour)) for hour in expected} == {
        hour: {times: raised} if times else {} for hour, times in expected.items()
    }
    if kind == "stateful":
        _memory_is_exact(guarantee, {hour: emitted(kafka, loaded, hour) for hour in expected})
    _gaps_are_known(guarantee, loaded, kafka)


def _die(
    step: str, loaded: LoadedDetector, kafka: KafkaSettings, spark: SparkSession | None, work: Path, hour: int
) -> None:
    """Runs it until it dies at `step` of the batch of this hour."""
    settings = JobSettings(work=work, generation=hour + 1)
    run = Running(Halting(parts_of(loaded, settings, kafka, spark, JobMetrics(loaded.name))))
    caught_up(kafka, run)
    dying: Any = run.runner
    dying.step, dying.armed = step, True
    send_a_batch(kafka, loaded.name, hour)
    run.join()
    assert isinstance(run.error, Crash)
    dying.current.output.committer.refresh()  # as it may on its way out
    samples = dying.parts.metrics.snapshot()["samples"]
    in_vain = samples["lozenge_offsets_begun_total"] - samples["lozenge_offsets_committed_total"]
    if spark is None:  # an aggregate counts again what lies before
        assert in_vain == (EVENTS + 1 if step == BETWEEN else 0)


def _memory_is_exact(guarantee: str, by_hour: dict[int, list[dict[str, Any]]]) -> None:
    """The fold has counted every event once, also where it emitted it twice; or begun from scratch at every start."""
    for hour, found in by_hour.items():
        begin = 0 if guarantee == "at-most-once" else hour * EVENTS
        if found:
            assert {int(a["reason"].split()[-1]) for a in found} == {*range(begin + 1, begin + EVENTS + 1)}


def _gaps_are_known(guarantee: str, loaded: LoadedDetector, kafka: KafkaSettings) -> None:
    """What was skipped for being late is a gap in its coverage, and may be backfilled; there is no other gap."""
    skipped = gaps(coverage_of(kafka, loaded.name))
    if guarantee != "at-most-once":
        assert skipped == []
        return
    lines = read_log(kafka, kafka.topics.detector(loaded.name).coverage, CoverageSegment)
    assert [gap.size for gap in skipped] == [EVENTS + 1], lines  # and the end of the transaction that sent them


class Sleeping(Halting):
    """Sleeps where others die."""

    def __init__(self, parts: JobParts) -> None:
        super().__init__(parts)
        self.asleep, self.wakes = threading.Event(), threading.Event()

    def halt(self) -> None:
        self.asleep.set()
        self.wakes.wait()


@pytest.mark.parametrize(("guarantee", "times"), [("exactly-once", 1), ("at-least-once", 2), ("at-most-once", 0)])
def test_a_job_that_was_replaced_while_it_slept_moves_nothing_and_ends(
    guarantee: str, times: int, kafka: KafkaSettings, tmp_path: Path
) -> None:
    """At least once it still emits what it had processed; at most once nothing emits that."""
    loaded = new_detector(kafka, Detector(every_event, settings=Settings), tmp_path, guarantee=guarantee)
    settings = JobSettings(work=tmp_path / "old")
    old = Sleeping(parts_of(loaded, settings, kafka, None, JobMetrics(loaded.name)))
    run = Running(old)
    caught_up(kafka, run)
    old.armed = True
    send_a_batch(kafka, loaded.name, 0)
    assert old.asleep.wait(60)
    with running(loaded, kafka, None, tmp_path / "new", generation=2) as new:
        caught_up(kafka, new)
        send_a_batch(kafka, loaded.name, 1)
        wait_for(lambda: len(emitted(kafka, loaded, 1)) >= EVENTS, "the alerts of its successor")
        after = group_offsets(kafka, loaded.name)
        old.wakes.set()
        run.join()
        assert group_offsets(kafka, loaded.name) == after
    assert isinstance(run.error, Fenced)
    assert times_emitted(emitted(kafka, loaded, 0)) == ({times: EVENTS} if times else {})
    assert times_emitted(emitted(kafka, loaded, 1)) == {1: EVENTS}


def test_every_declarable_guarantee_has_its_commit() -> None:
    assert delivery_guarantees.COMMIT_BY_GUARANTEE.keys() == TIMES_EMITTED.keys()


def test_the_group_never_moves_past_an_alert_that_the_broker_did_not_take(kafka: KafkaSettings, tmp_path: Path) -> None:
    """An aggregate in Real-Time Mode publishes without waiting for an answer; its commit waits for all of them."""
    declared = {"kind": "aggregate", "mode": "realtime", "trigger": "1m", "lateness": "10m", "window": "1m"}
    loaded = new_detector(kafka, Detector(minutes, settings=Settings), tmp_path, **declared)
    before = group_offsets(kafka, loaded.name)
    clients.limit_record_size(kafka, kafka.topics.detector(loaded.name).alerts, 100)
    identity = Identity.of(loaded, JobSettings(work=tmp_path), kafka.topics)
    writer = AlertEncoder(identity, loaded.declaration, Versions(Settings().digest))
    claims = Claims(kafka, identity, kafka.topics.partitions, loaded.declaration)
    claim = claims.claim(1, Versions(Settings().digest))
    committer = LiveCommitter(kafka, identity, loaded.declaration, claims, claim)
    draft = DraftAlert(Alert(reason="long"), "card_1", "minute", NOW, NOW)
    assert committer.publish([draft], writer) == [draft]
    ends = {partition: offset + 1 for partition, offset in committer.offsets.items()}
    with pytest.raises(BrokerUnavailable, match="1 were not acknowledged"):
        committer.commit(BatchCommit(BatchResult([]), [], ends, CommitMetadata(1)), writer)
    after = group_offsets(kafka, loaded.name)
    assert {p: offset for p, (offset, _) in after.items()} == {p: offset for p, (offset, _) in before.items()}
