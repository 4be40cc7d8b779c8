"""One release after the other at an exact offset, and settings that change under a running query."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from lozenge import Detector, Event, Fold, State, Tables, fold
from lozenge.contracts.avro import Codec
from lozenge.detector.events import Alert
from lozenge.detector.loader import LoadedDetector
from lozenge.errors import Fenced
from lozenge.job.lifecycle.job_loop import JobLoop
from lozenge.job.lifecycle.job_parts import Happened, JobParts
from lozenge.job.lifecycle.job_state import JobAction, JobEvent
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.job_status import JobPhase, read_job_status
from tests.integration import clients
from tests.integration.harness import (
    Crash,
    alerts,
    committed,
    event,
    group_offsets,
    move,
    new_detector,
    send,
    wait_for,
)
from tests.integration.job.traffic import (
    CARDS,
    KINDS,
    Above,
    Count,
    Job,
    Mortal,
    Traffic,
    above,
    await_each_once,
    counting,
    each,
)

pytestmark = pytest.mark.integration


def with_standby(
    loaded: LoadedDetector,
    by: LoadedDetector,
    kafka: KafkaSettings,
    spark: SparkSession,
    folder: Path,
    old: type[JobLoop] = JobLoop,
    **standby: Any,
) -> tuple[Job, Job]:
    """Under traffic: r1, which is live and has had a batch, and r2, which is ready to relieve it."""
    before = Job(loaded, kafka, spark, folder / "r1", make=old, generation=1)
    before.wait(JobPhase.LIVE)
    wait_for(lambda: before.report.records > 0, "the first batch of r1")
    after = Job(by, kafka, spark, folder / "r2", generation=2, standby=True, **standby)
    after.wait(JobPhase.READY)
    return before, after


@contextmanager
def relieved(
    loaded: LoadedDetector, by: LoadedDetector, kafka: KafkaSettings, spark: SparkSession, folder: Path, **standby: Any
) -> Iterator[tuple[Traffic, Job]]:
    """Under traffic r1 runs, r2 is a standby and cuts over; r1 must have been fenced. Cards begin with the name."""
    traffic = Traffic(kafka, loaded)
    try:
        old, new = with_standby(loaded, by, kafka, spark, folder, **standby)
        assert group_offsets(kafka, loaded.name)[0][1].startswith("1/")
        new.order(generation=2)
        new.wait(JobPhase.LIVE)
        old.run.join()
        assert isinstance(old.run.error, Fenced)
        minute = traffic.rounds + 12  # even an aggregate emits something after it
        wait_for(lambda: traffic.rounds > minute, "a minute of events under r2")
        yield traffic, new
    finally:
        traffic.end()
    new.run.stop()
    assert new.run.error is None


@pytest.mark.parametrize(
    ("kind", "guarantee"),
    [("rule", "exactly-once"), ("stateful", "at-most-once"), ("aggregate", "at-least-once")],
)
def test_a_standby_continues_exactly_where_the_release_before_ended(
    kind: str, guarantee: str, kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    """Also where it has another guarantee: it was there already, and has no reason to begin from scratch."""
    detect, declared = KINDS[kind]
    loaded = new_detector(kafka, Detector(detect, settings=Above), tmp_path, kind=kind, **declared)
    other = replace(loaded, declaration=loaded.declaration.model_copy(update={"guarantee": guarantee}))
    with relieved(loaded, other, kafka, spark, tmp_path) as (traffic, new):
        sent = traffic.end()
        expected = sent * CARDS if kind != "aggregate" else (sent // 12) * CARDS
        wait_for(lambda: len(alerts(kafka, loaded.name)) >= expected, f"{expected} alerts")
        ends = clients.ends(kafka, kafka.topics.events)
        wait_for(lambda: new.run.runner.offsets == ends, "the end of the events: a repeat would have come before")
    emitted = alerts(kafka, loaded.name)
    assert {a["release"] for a in emitted} == {"r1", "r2"}
    assert not [i for i, times in Counter(a["alert_id"] for a in emitted).items() if times > 1]
    assert len(emitted) in range(expected, expected + (CARDS + 1 if kind == "aggregate" else 1))
    since = new.report.since
    for a in emitted:
        if a["trigger"] is not None:
            assert (a["release"] == "r2") == (a["trigger"]["offset"] >= since[a["trigger"]["partition"]])
    if kind == "stateful":
        assert {a["reason"] for a in emitted} == {
            f"{loaded.name}{c} {n}" for c in range(CARDS) for n in range(1, sent + 1)
        }


def test_a_rebuild_folds_history_by_another_key_and_emits_only_new_alerts(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    def by_merchant(events: DataFrame, settings: Above, tables: Tables) -> Fold[Count]:
        return fold(events, by=("card_id", "merchant_id"), state=Count, step=each, expires=timedelta(days=1))

    loaded = new_detector(kafka, Detector(counting, settings=Above), tmp_path, kind="stateful")
    name = loaded.name
    clients.trim(
        kafka, kafka.topics.events, clients.ends(kafka, kafka.topics.events)
    )  # others have written what nobody can read
    send(kafka, [event(-n, f"{name}{c}") for n in range(1, 4) for c in range(CARDS)])  # history, before r1 begins
    move(kafka, name, clients.ends(kafka, kafka.topics.events))
    other = replace(loaded, detector=Detector(by_merchant, settings=Above))
    with relieved(loaded, other, kafka, spark, tmp_path, state="rebuild") as (traffic, _):
        sent = traffic.end()
        wait_for(lambda: len(alerts(kafka, name)) >= sent * CARDS, "all alerts")
    emitted = alerts(kafka, name)
    assert len(emitted) == sent * CARDS
    counts = {
        c: [int(a["reason"].split()[1]) for a in emitted if a["entity"]["id"] == f"{name}{c}"] for c in range(CARDS)
    }
    for counted in counts.values():
        by_r1 = next(n for n in range(1, sent + 1) if n not in counted) - 1
        assert sorted(counted) == [*range(1, by_r1 + 1), *range(by_r1 + 4, sent + 4)]
    stored = {record.key: record.value for record in committed(kafka, kafka.topics.state(name))}
    assert {len(json.loads(key)) for key, value in stored.items() if value is not None} == {2}


def test_fresh_drops_the_state_in_memory_and_in_its_topic(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = new_detector(kafka, Detector(counting, settings=Above), tmp_path, kind="stateful")
    name = loaded.name
    send(kafka, [event(n, f"{name}gone") for n in range(5)])
    with relieved(loaded, loaded, kafka, spark, tmp_path, state="fresh") as (traffic, _):
        sent = traffic.end()
        wait_for(lambda: len(alerts(kafka, name)) >= sent * CARDS + 5, "all alerts")
    emitted = alerts(kafka, name)
    assert len(emitted) == sent * CARDS + 5
    newest = {a["entity"]["id"]: a["reason"] for a in sorted(emitted, key=lambda a: a["event_time"])}
    assert all(int(newest[f"{name}{c}"].split()[1]) < sent for c in range(CARDS))
    stored = {record.key: record.value for record in committed(kafka, kafka.topics.state(name))}
    assert stored[f'["{name}gone"]'.encode()] is None


class DiesBeforeClaim(JobLoop):
    """Asked to cut over, it dies before it has done anything."""

    def _perform(self, action: JobAction, happened: Happened) -> Happened | None:
        if action is JobAction.CUT_OVER:
            raise Crash("killed here")
        return super()._perform(action, happened)


class DiesAfterClaim(JobLoop):
    """It has fenced the replaced job, and dies before it has published anything."""

    def __init__(self, parts: JobParts) -> None:
        super().__init__(parts)

        def crash() -> None:
            raise Crash("killed here")

        self._starts._start_backfill = crash  # type: ignore[method-assign] # the first step after the claim


class DiesAfterFirstTransaction(JobLoop):
    """It has published what it buffered, and dies before its next step."""

    def _perform(self, action: JobAction, happened: Happened) -> Happened | None:
        following = super()._perform(action, happened)
        if following is not None and following.event is JobEvent.BUFFER_PUBLISHED:
            raise Crash("killed here")
        return following


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dies", [DiesBeforeClaim, DiesAfterClaim, DiesAfterFirstTransaction])
def test_a_kill_at_any_step_of_a_cut_over_loses_and_doubles_nothing(
    dies: type[JobLoop], kind: str, kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    detect, declared = KINDS[kind]
    loaded = new_detector(kafka, Detector(detect, settings=Above), tmp_path, kind=kind, **declared)
    traffic = Traffic(kafka, loaded)
    try:
        old, new = with_standby(loaded, loaded, kafka, spark, tmp_path, make=dies)
        new.order(generation=2)
        new.run.join()
        assert isinstance(new.run.error, Crash)
        if dies is DiesBeforeClaim:
            assert old.run.error is None  # it has not noticed
            before = old.report.records
            wait_for(lambda: old.report.records > before, "r1 to continue")
            after = old
        else:
            old.run.join()
            assert isinstance(old.run.error, Fenced)
            again = tmp_path / ("r1" if dies is DiesAfterClaim else "r2")
            after = Job(loaded, kafka, spark, again, generation=3)
            after.wait(JobPhase.LIVE)
            wait_for(lambda: after.report.records > 0, "a batch after it")
    finally:
        sent = traffic.end()
    await_each_once(kafka, loaded, kind, sent, after)


@pytest.mark.parametrize(
    ("kind", "dies"),
    [
        *((kind, "inside its transaction") for kind in KINDS),
        ("stateful", "before its transaction"),
        ("stateful", "after its transaction"),
    ],
)
def test_the_death_of_the_old_release_at_any_step_of_a_cut_over_loses_and_doubles_nothing(
    kind: str, dies: str, kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    detect, declared = KINDS[kind]
    loaded = new_detector(kafka, Detector(detect, settings=Above), tmp_path, kind=kind, **declared)
    traffic = Traffic(kafka, loaded)
    try:
        old, new = with_standby(loaded, loaded, kafka, spark, tmp_path, old=Mortal)
        setattr(old.run.runner, "dies", dies)  # noqa: B010 - Job makes any kind of runner
        old.run.join()
        assert isinstance(old.run.error, Crash)
        new.order(generation=2)
        new.wait(JobPhase.LIVE)
        wait_for(lambda: new.report.records > 0, "a batch of r2")
    finally:
        sent = traffic.end()
    await_each_once(kafka, loaded, kind, sent, new)


class MeetsPoison(JobLoop):
    """It has claimed, and the batch of its first transaction holds a record that nobody can read."""

    def _perform(self, action: JobAction, happened: Happened) -> Happened | None:
        if action is not JobAction.CUT_OVER:
            return super()._perform(action, happened)
        run = self.progress.run
        assert run is not None
        in_flight, run.in_flight = run.in_flight, True  # so that it waits for a batch
        assert super()._perform(action, happened) is None
        run.in_flight = in_flight
        send(self.parts.kafka, [Codec.of("event").encode(event(-1))[:-9]])
        return None


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_that_fails_between_claim_and_first_transaction_restarts_at_the_claimed_offsets(
    kind: str, kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    detect, declared = KINDS[kind]
    loaded = new_detector(kafka, Detector(detect, settings=Above), tmp_path, kind=kind, **declared)
    with relieved(loaded, loaded, kafka, spark, tmp_path, make=MeetsPoison) as (traffic, new):
        wait_for(lambda: committed(kafka, kafka.topics.dead_letters(loaded.name)), "the dead letter")
        await_each_once(kafka, loaded, kind, traffic.end(), new)
    assert len(committed(kafka, kafka.topics.dead_letters(loaded.name))) == 1


def test_keep_carries_state_over_to_a_release_whose_state_has_a_further_field(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    class Sum(State):
        n: int = 0
        total: str = "0"

    def sums(state: Sum, event: Event, settings: Above) -> Iterator[Alert]:
        state.n += 1
        state.total = str(float(state.total) + 1)
        yield Alert(reason=f"{event.card_id} {state.n}", values={"total": state.total})

    def summing(events: DataFrame, settings: Above, tables: Tables) -> Fold[Sum]:
        return fold(events, by="card_id", state=Sum, step=sums, expires=timedelta(days=1))

    loaded = new_detector(kafka, Detector(counting, settings=Above), tmp_path, kind="stateful")
    wider = replace(loaded, detector=Detector(summing, settings=Above))
    with relieved(loaded, wider, kafka, spark, tmp_path) as (traffic, _):
        sent = traffic.end()
        wait_for(lambda: len(alerts(kafka, loaded.name)) >= sent * CARDS, "all alerts")
    emitted = alerts(kafka, loaded.name)
    assert {a["reason"] for a in emitted} == {f"{loaded.name}{c} {n}" for c in range(CARDS) for n in range(1, sent + 1)}
    assert len(emitted) == sent * CARDS
    assert all(("total" in a["evidence"]["values"]) == (a["release"] == "r2") for a in emitted)


def test_new_settings_hold_from_an_offset_on_and_refused_ones_change_nothing(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = new_detector(kafka, Detector(above, settings=Above), tmp_path)
    job = Job(loaded, kafka, spark, tmp_path / "r1", generation=1)
    job.wait(JobPhase.LIVE)
    first = job.report
    send(kafka, [event(n, amount="150.00") for n in range(5)])
    wait_for(lambda: len(alerts(kafka, loaded.name)) == 5, "5 alerts under the first limit")
    job.order(generation=1, settings={"limit": "much"})
    wait_for(lambda: "limit" in job.report.rejected, "the refusal")
    send(kafka, [event(n, amount="150.00") for n in range(5, 10)])
    wait_for(lambda: len(alerts(kafka, loaded.name)) == 10, "5 more under the first limit")
    job.order(generation=1, settings={"limit": 200}, max_batch=3, trigger="200ms")
    wait_for(lambda: job.report.digest != first.digest, "the new digest")
    assert job.report.rejected == ""
    assert sum(job.report.since.values()) == sum(first.since.values()) + 10
    send(kafka, [event(n, amount=amount) for n, amount in enumerate(["150.00", "250.00"], 10)])
    wait_for(lambda: len(alerts(kafka, loaded.name)) == 11, "the alert over the new limit")
    job.run.stop()
    emitted = alerts(kafka, loaded.name)
    assert Counter(a["settings_digest"] for a in emitted) == {first.digest: 10, job.report.digest: 1}
    assert read_job_status(tmp_path / "r1").pid == job.report.pid  # type: ignore[union-attr]


def test_a_fold_keeps_its_state_when_its_settings_change(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = new_detector(kafka, Detector(counting, settings=Above), tmp_path, kind="stateful")
    job = Job(loaded, kafka, spark, tmp_path / "r1", generation=1)
    send(kafka, [event(n) for n in range(3)])
    wait_for(lambda: len(alerts(kafka, loaded.name)) == 3, "3 alerts")
    before = job.report.digest
    job.order(generation=1, settings={"limit": 1})
    wait_for(lambda: job.report.digest != before, "the new digest")
    send(kafka, [event(n) for n in range(3, 5)])
    wait_for(lambda: len(alerts(kafka, loaded.name)) == 5, "2 more")
    job.run.stop()
    assert {a["reason"] for a in alerts(kafka, loaded.name)} == {f"card_1 {n}" for n in range(1, 6)}
