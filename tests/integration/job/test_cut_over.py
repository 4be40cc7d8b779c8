"""One release after the other at an exact offset, and settings that change under a running query."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from lozenge import Detector, Event, Fold, State, Tables, fold
from lozenge.detector.events import Alert
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.job_status import JobPhase, read_job_status
from tests.integration import clients
from tests.integration.harness import (
    alerts,
    committed,
    event,
    move,
    new_detector,
    send,
    wait_for,
)
from tests.integration.job.cut_overs import (
    DiesAfterClaim,
    a_detector,
    survives_the_kill_of_the_new_one,
    under_replacement,
)
from tests.integration.job.sparkless import Count, each
from tests.integration.job.traffic import (
    CARDS,
    KINDS,
    Above,
    Job,
    above,
    counting,
)

pytestmark = pytest.mark.integration


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
    with under_replacement(loaded, other, kafka, spark, tmp_path) as (traffic, new):
        sent = traffic.end()
        expected = sent * CARDS if kind != "aggregate" else (sent // 12) * CARDS
        wait_for(lambda: len(alerts(kafka, loaded.name)) >= expected, f"{expected} alerts")
        ends = clients.ends(kafka, kafka.topics.events("auth"))
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
        kafka, kafka.topics.events("auth"), clients.ends(kafka, kafka.topics.events("auth"))
    )  # others have written what nobody can read
    send(kafka, [event(-n, f"{name}{c}") for n in range(1, 4) for c in range(CARDS)])  # history, before r1 begins
    move(kafka, name, clients.ends(kafka, kafka.topics.events("auth")))
    other = replace(loaded, detector=Detector(by_merchant, settings=Above))
    with under_replacement(loaded, other, kafka, spark, tmp_path, state="rebuild") as (traffic, _):
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
    stored = {record.key: record.value for record in committed(kafka, kafka.topics.detector(name).state)}
    assert {len(json.loads(key)) for key, value in stored.items() if value is not None} == {2}


def test_fresh_drops_the_state_in_memory_and_in_its_topic(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = new_detector(kafka, Detector(counting, settings=Above), tmp_path, kind="stateful")
    name = loaded.name
    send(kafka, [event(n, f"{name}gone") for n in range(5)])
    with under_replacement(loaded, loaded, kafka, spark, tmp_path, state="fresh") as (traffic, _):
        sent = traffic.end()
        wait_for(lambda: len(alerts(kafka, name)) >= sent * CARDS + 5, "all alerts")
    emitted = alerts(kafka, name)
    assert len(emitted) == sent * CARDS + 5
    newest = {a["entity"]["id"]: a["reason"] for a in sorted(emitted, key=lambda a: a["event_time"])}
    assert all(int(newest[f"{name}{c}"].split()[1]) < sent for c in range(CARDS))
    stored = {record.key: record.value for record in committed(kafka, kafka.topics.detector(name).state)}
    assert stored[f'["{name}gone"]'.encode()] is None


def test_a_kill_after_the_claim_of_an_aggregate_loses_and_doubles_nothing(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    survives_the_kill_of_the_new_one(DiesAfterClaim, a_detector("aggregate", kafka, tmp_path), kafka, spark, tmp_path)


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
    with under_replacement(loaded, wider, kafka, spark, tmp_path) as (traffic, _):
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
    job.order(generation=1, settings={"limit": -1})
    wait_for(lambda: "no limit is negative" in job.report.rejected, "the refusal by detect()")
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
