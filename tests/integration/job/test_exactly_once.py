"""From canonical event to alert exactly once: crashes around the commit, generations, poison, schemas."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge import Detector, Event, Fold, Settings, State, Tables, Timer, alert, fold
from lozenge.contracts import ids
from lozenge.contracts.avro import Codec
from lozenge.contracts.schemas import Schema
from lozenge.detector.events import Alert
from lozenge.detector.fold import Raised
from lozenge.detector.loader import LoadedDetector
from lozenge.errors import Fenced
from lozenge.job.lifecycle.job_loop import JobLoop
from lozenge.job.lifecycle.job_parts import Happened
from lozenge.job.lifecycle.job_state import JobAction
from lozenge.job.settings import JobSettings
from lozenge.job.tools.backtest import backtest
from lozenge.kafka.schema_topic import announce
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.metrics.app_metrics import JobMetrics
from lozenge.spark.internals import driver_jvm
from lozenge.streams.alert_stream import alert_stream, event_of
from lozenge.testing import run_fold
from lozenge_deploy.observe.topic_tail import latest
from tests.integration import clients
from tests.integration.clients import read_by_kafka_python
from tests.integration.harness import (
    Crash,
    Running,
    alerts,
    committed,
    event,
    group_offsets,
    move,
    new_detector,
    running,
    send,
    wait_for,
)
from tests.integration.job.sparkless import parts_of
from tests.merged_streams import BY_CARD, SIGN_IN, sign_in
from tests.streams import AUTH

pytestmark = pytest.mark.integration


class Limit(Settings):
    limit: float = 100.0
    window: str = "10 minutes"


def over(events: DataFrame, settings: Limit, tables: Tables) -> DataFrame:
    return events.where(F.col("amount") > settings.limit).select(*alert(reason=F.lit("over")))


def over_and_fragile(events: DataFrame, settings: Limit, tables: Tables) -> DataFrame:
    risky = events.withColumn("number", F.col("merchant_id").cast("int"))
    return risky.where(F.col("number") > 0).select(*alert(reason=F.lit("numbered")))


def burst(events: DataFrame, settings: Limit, tables: Tables) -> DataFrame:
    counted = events.groupBy(F.window("event_time", settings.window), "card_id").agg(
        F.count("*").alias("n"), F.max("event_time").alias("last")
    )
    return counted.where(F.col("n") >= 3).select(
        *alert(reason=F.lit("burst"), entity=F.col("card_id"), at=F.col("last"), window=F.col("window"), band="3")
    )


class Count(State):
    n: int = 0


def every_second(state: Count, event: Event, settings: Limit) -> Any:
    if event.merchant_id == "poison":
        raise ValueError("cannot count this")
    state.n += 1
    if state.n % 2 == 0:
        yield Alert(reason=f"number {state.n}", values={"n": state.n})


def counting(events: DataFrame, settings: Limit, tables: Tables) -> Fold[Count]:
    return fold(events, by="card_id", state=Count, step=every_second, expires=timedelta(days=1))


class CrashAfterCommit(JobLoop):
    """Dies between the Kafka transaction of its n-th batch and Spark's own commit of that batch."""

    dies_at = 1

    def _perform(self, action: JobAction, happened: Happened) -> Happened | None:
        if action is JobAction.ACCEPT and type(self).dies_at == 1:
            assert self._batches._take(happened.about) is False
            raise Crash("killed here")
        type(self).dies_at -= action is JobAction.ACCEPT
        return super()._perform(action, happened)


def crashing(at: int) -> type[JobLoop]:
    return type("Crashing", (CrashAfterCommit,), {"dies_at": at})


@contextmanager
def result_size(spark: SparkSession, limit: str) -> Iterator[None]:
    """How much of a job's result the driver takes, for the length of the block."""
    conf: Any = driver_jvm.spark_context(spark).conf()
    before = conf.get("spark.driver.maxResultSize", "1g")
    conf.set("spark.driver.maxResultSize", limit)
    try:
        yield
    finally:
        conf.set("spark.driver.maxResultSize", before)


def run_until_crash(loaded: Any, kafka: KafkaSettings, spark: SparkSession, work: Path, at: int) -> None:
    with pytest.raises(Crash), running(loaded, kafka, spark, work, make=crashing(at)) as run:
        run.join()


def test_a_crash_after_a_batch_without_data_is_recognised_by_its_commit_metadata(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    """The second batch only moves the watermark: its end offsets equal the first one's."""
    loaded = new_detector(
        kafka, Detector(burst, settings=Limit), tmp_path, kind="aggregate", lateness="1s", window="10m"
    )
    cards = [f"card_{n}" for n in range(40)]  # every partition has events, so the watermark moves
    send(kafka, [event(n, card=card) for n, card in enumerate(cards * 3)])
    run_until_crash(loaded, kafka, spark, tmp_path, 2)
    before = group_offsets(kafka, loaded.name)
    send(kafka, [event(1000 + n, card=card, at=timedelta(hours=1)) for n, card in enumerate(cards * 3)])
    with running(loaded, kafka, spark, tmp_path, generation=2):
        wait_for(lambda: len(alerts(kafka, loaded.name)) >= 80, "80 alerts")
    ids = [a["alert_id"] for a in alerts(kafka, loaded.name)]
    assert len(ids) == len(set(ids)) == 80
    stamps = {int(metadata.split("/")[2]) for _, metadata in before.values()}
    assert stamps == {1}


def test_a_running_job_is_fenced_by_a_newer_one(
    kafka: KafkaSettings, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    loaded = new_detector(kafka, Detector(over, settings=Limit), tmp_path)
    settings = JobSettings(work=tmp_path / "old", generation=1)
    old = Running(JobLoop(parts_of(loaded, settings, kafka, None, JobMetrics(loaded.name))))
    wait_for(lambda: group_offsets(kafka, loaded.name)[0][1].startswith("1/"), "the claim of generation 1")
    with running(loaded, kafka, None, tmp_path / "new", generation=2):
        wait_for(lambda: group_offsets(kafka, loaded.name)[0][1].startswith("2/"), "the claim of generation 2")
        send(kafka, [event(n, amount="150.00") for n in range(10)])
        old.join()
        wait_for(lambda: len(alerts(kafka, loaded.name)) >= 10, "the new one's alerts")
    assert isinstance(old.error, Fenced)
    assert "FATAL" not in capfd.readouterr().err, "an ordinary cut-over is nothing to act on"
    assert len(read_by_kafka_python(kafka, kafka.topics.detector(loaded.name).alerts)) == 10


def test_a_release_alongside_the_live_one_leaves_it_untouched(kafka: KafkaSettings, tmp_path: Path) -> None:
    loaded = new_detector(kafka, Detector(over, settings=Limit), tmp_path)
    ensure_topics(kafka, kafka.topics.shadow(loaded.name, "dev").contracts())
    with running(loaded, kafka, None, tmp_path / "live", generation=3) as run:
        send(kafka, [event(1_000)])
        ends = clients.ends(kafka, kafka.topics.events("auth"))
        wait_for(lambda: run.runner.offsets == ends, "the live job's first batch")
        live = group_offsets(kafka, loaded.name)
        with running(loaded, kafka, None, tmp_path / "dev", live=False, release="dev", generation=9):
            wait_for(lambda: group_offsets(kafka, f"{loaded.name}@dev"), "the claim of the other release")
            assert group_offsets(kafka, loaded.name) == live
            send(kafka, [event(n, amount="150.00") for n in range(8)])
            wait_for(lambda: len(alerts(kafka, loaded.name)) >= 8, "the live alerts")
            wait_for(
                lambda: len(committed(kafka, kafka.topics.shadow(loaded.name, "dev").alerts)) >= 8,
                "the alerts of the other release",
            )
    assert len(alerts(kafka, loaded.name)) == 8


def test_one_poisoned_record_in_a_hundred_costs_one_dead_letter(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = new_detector(kafka, Detector(over_and_fragile, settings=Limit), tmp_path)
    many = [event(n, card=f"card_{n % 97}", merchant_id="poison" if n == 67 else "7") for n in range(100)]
    send(kafka, many)
    with running(loaded, kafka, spark, tmp_path):
        wait_for(lambda: len(alerts(kafka, loaded.name)) >= 99, "99 alerts")
    found = [
        dict(record.headers)["ce_id"]
        for record in read_by_kafka_python(kafka, kafka.topics.detector(loaded.name).alerts)
    ]
    assert len(set(found)) == len(found) == 99
    (dead_letter,) = read_by_kafka_python(kafka, kafka.topics.dead_letters(loaded.name))
    headers = dict(dead_letter.headers)
    assert headers["__connect.errors.stage"] == b"detect"
    assert headers["__connect.errors.connector.name"] == loaded.name.encode()
    assert (headers["x"], headers["attempt"]) == (b"1", b"1")
    original = next(
        r
        for r in committed(kafka, kafka.topics.events("auth"))
        if r.value == dead_letter.value and r.key == dead_letter.key
    )
    assert headers["__connect.errors.offset"] == str(original.offset).encode()


def test_a_fold_sends_the_event_that_raises_to_the_dead_letter_topic_and_continues(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = new_detector(kafka, Detector(counting, settings=Limit), tmp_path, kind="stateful")
    send(kafka, [event(n, merchant_id="poison" if n == 3 else "m-1") for n in range(9)])
    with running(loaded, kafka, spark, tmp_path):
        wait_for(lambda: len(alerts(kafka, loaded.name)) >= 4, "4 alerts")
    assert sorted(a["evidence"]["values"]["n"] for a in alerts(kafka, loaded.name)) == ["2", "4", "6", "8"]
    assert len(committed(kafka, kafka.topics.dead_letters(loaded.name))) == 1


def test_a_timer_that_raises_becomes_a_dead_letter_of_stage_timer(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    def wait(state: Count, event: Event, settings: Settings) -> Iterator[Timer]:
        state.n += 1
        yield Timer(event.event_time + timedelta(minutes=1))

    def fail(state: Count, at: datetime, settings: Settings) -> Iterator[Alert]:
        raise ValueError("not ready")

    def waiting(frame: DataFrame, settings: Settings, tables: Tables) -> Fold[Count]:
        return fold(frame, by="card_id", state=Count, step=wait, on_timer=fail, expires=timedelta(1))

    loaded = new_detector(kafka, Detector(waiting, settings=Settings), tmp_path, kind="stateful")
    send(kafka, [event(1), *(event(n, at=timedelta(minutes=2)) for n in range(2, 30))])
    with running(loaded, kafka, spark, tmp_path):
        wait_for(lambda: committed(kafka, kafka.topics.dead_letters(loaded.name)), "the timer's dead letter")
    (dead_letter,) = committed(kafka, kafka.topics.dead_letters(loaded.name))
    headers = dict(dead_letter.headers)
    assert (dead_letter.key, json.loads(dead_letter.value)) == (b'["card_1"]', {"n": 1})
    assert headers["__connect.errors.stage"] == b"timer"
    assert headers["__connect.errors.topic"] == kafka.topics.detector(loaded.name).state.encode()
    message = headers["__connect.errors.exception.message"]
    assert b'of key ["card_1"]: ValueError: not ready (test_exactly_once.py line ' in message


def test_a_batch_too_large_for_the_driver_is_made_smaller(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    """An aggregate, whose checkpoint holds the plan of the batch."""
    declared = {"kind": "aggregate", "lateness": "10m", "window": "10m"}
    loaded = new_detector(kafka, Detector(burst, settings=Limit), tmp_path, max_batch=40_000, **declared)
    send(kafka, [event(n, card=f"card_{n // 3}", amount="150.00") for n in range(12_000)])
    with result_size(spark, "400k"), running(loaded, kafka, spark, tmp_path) as run:
        expected = 4_000
        wait_for(lambda: len(alerts(kafka, loaded.name)) >= expected, f"{expected} alerts")
        assert run.runner.parts.planner.limit.value < 40_000  # type: ignore[union-attr]
    ids = [a["alert_id"] for a in alerts(kafka, loaded.name)]
    assert len(ids) == len(set(ids)) == expected


def test_a_new_release_of_an_aggregate_counts_open_windows_whole(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    declared = {"kind": "aggregate", "lateness": "10m", "window": "10m"}
    loaded = new_detector(kafka, Detector(burst, settings=Limit), tmp_path, **declared)

    def decided() -> int:
        return sum(offset for offset, _ in group_offsets(kafka, loaded.name).values())

    start = decided()
    send(kafka, [event(n, card=f"open_{n % 20}") for n in range(40)])
    with running(loaded, kafka, spark, tmp_path, release="1"):
        wait_for(lambda: decided() == start + 40, "two of three events of every card")
    before = group_offsets(kafka, loaded.name)
    assert alerts(kafka, loaded.name) == []
    send(kafka, [event(100 + n, card=f"open_{n}") for n in range(20)])
    with running(loaded, kafka, spark, tmp_path, release="2", generation=2):
        wait_for(lambda: decided() == start + 60, "the third event of every card")
    entities = Counter(a["entity"]["id"] for a in alerts(kafka, loaded.name))
    assert {card: n for card, n in entities.items() if card.startswith("open_")} == {f"open_{n}": 1 for n in range(20)}
    after = group_offsets(kafka, loaded.name)
    assert all(after[partition][0] >= offset for partition, (offset, _) in before.items())


def test_a_fold_that_raises_on_everything_commits_nothing(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    def fail(state: State, event: Event, settings: Settings) -> Iterator[Alert]:
        raise ValueError("always")

    def failing(frame: DataFrame, settings: Settings, tables: Tables) -> Fold[State]:
        return fold(frame, by="card_id", state=State, step=fail, expires=timedelta(1))

    loaded = new_detector(kafka, Detector(failing, settings=Settings), tmp_path, kind="stateful")
    before = group_offsets(kafka, loaded.name)
    send(kafka, [event(n) for n in range(300)])
    with running(loaded, kafka, spark, tmp_path) as run:
        wait_for(lambda: "the detector raises on" in run.runner.circuit_open, "the breaker")
    after = group_offsets(kafka, loaded.name)
    assert {p: o for p, (o, _) in after.items()} == {p: o for p, (o, _) in before.items()}
    assert committed(kafka, kafka.topics.dead_letters(loaded.name)) == []


def test_a_field_that_upstream_adds_reaches_a_running_detector_without_a_restart(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = new_detector(kafka, Detector(over, settings=Limit), tmp_path)
    grown = AUTH.event_schema.definition
    grown["fields"].append({"name": "risk_hint", "type": ["null", "string"], "default": None})
    schema = Schema(901, AUTH.schema_name, 2, json.dumps(grown))
    with running(loaded, kafka, spark, tmp_path) as run:
        send(kafka, [event(1, amount="150.00")])
        wait_for(lambda: len(alerts(kafka, loaded.name)) >= 1, "the first alert")
        announce(kafka, [schema])
        send(kafka, [event(2, amount="150.00", risk_hint="new")], Codec(schema))
        wait_for(lambda: len(alerts(kafka, loaded.name)) >= 2, "the alert of the new schema")
        assert run.thread.is_alive()
    assert committed(kafka, kafka.topics.dead_letters(loaded.name)) == []


def test_alert_ids_do_not_depend_on_batches_or_releases(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = new_detector(kafka, Detector(over, settings=Limit), tmp_path)
    send(kafka, [event(n, amount="150.00", at=timedelta(seconds=n)) for n in range(30)])
    seen = [_shadow_ids(loaded, kafka, spark, tmp_path, release, size) for release, size in (("r1", 3), ("r2", 1000))]
    assert len(seen[0]) == 30
    assert seen[0] == seen[1]


def test_a_fold_over_two_streams_has_the_alerts_of_the_plain_fold_in_any_batches_and_in_a_backtest(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    """The topic also has events of a third stream, which other detectors read: they are skipped."""

    def step(state: Count, event: Event, settings: Settings) -> Iterator[Alert]:
        if event.stream == "sign_in":
            state.n += event.attempts
        elif state.n:
            yield Alert(reason=f"{event.amount} after {state.n} attempts", evidence=[event.event_id])

    def detect(frame: DataFrame, settings: Settings, tables: Tables) -> Fold[Count]:
        return fold(frame, by="card_id", state=Count, step=step, expires=timedelta(days=1))

    third = Schema(904, "event.third", 1, SIGN_IN.event_schema.text)
    announce(kafka, [third, *BY_CARD.schemas])
    loaded = new_detector(kafka, Detector(detect, settings=Settings), tmp_path, BY_CARD, kind="stateful")
    given: list[dict[str, Any]] = []
    for n in range(18):
        card: dict[str, Any] = {"card_id": f"{loaded.name}-{n % 3}"}
        if n % 2:
            given.append(event(n, at=timedelta(seconds=n), **card) | {"stream": "auth"})
            send(kafka, [{k: v for k, v in given[-1].items() if k != "stream"}], stream=BY_CARD)
        elif n % 6:
            given.append(sign_in(n, timedelta(seconds=n), **card) | {"stream": "sign_in"})
            send(kafka, [sign_in(n, timedelta(seconds=n), **card)], Codec(SIGN_IN.event_schema), BY_CARD)
        else:
            send(kafka, [sign_in(n, **card)], Codec(third), BY_CARD)
    no_frame: Any = None
    plain = run_fold(detect(no_frame, Settings(), {}), Settings(), given, "card", BY_CARD)
    raised = [outcome.event for outcome in plain if isinstance(outcome, Raised) and outcome.event]
    expected = {ids.alert_id(loaded.name, "card", event.card_id, event.event_id) for event in raised}
    assert len(expected) > 3
    for size in (1, 7, 1000):
        found = _shadow_ids(loaded, kafka, spark, tmp_path, f"r{size}", size)
        assert {alert_id.decode() for alert_id in found} == expected
    assert committed(kafka, kafka.topics.dead_letters(kafka.topics.shadow(loaded.name, "r7").name)) == []
    tried = backtest(loaded, JobSettings(), kafka, timedelta(minutes=30))
    assert ({alert.alert_id for alert in tried.new}, tried.dead_letters) == (expected, [])
    shown = [row["value"] for row in latest(kafka, BY_CARD.events(kafka.topics), 30)]
    assert {"amount", "attempts"} <= {name for value in shown for name in value}, "each as a record of its own stream"


def test_the_alerts_of_a_detector_are_events_of_another_each_exactly_once(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    """Both die between the transaction of a batch and its end; the fold has the alerts of the plain one."""

    def step(state: Count, raised: Event, settings: Settings) -> Any:
        state.n += 1
        if state.n % 3 == 0:
            yield Alert(reason=f"{state.n} of {raised.detector}: {raised.reason}", values=raised.values)

    def detect(frame: DataFrame, settings: Settings, tables: Tables) -> Fold[Count]:
        return fold(frame, by="entity", state=Count, step=step, expires=timedelta(days=1))

    first = new_detector(kafka, Detector(over, settings=Limit), tmp_path)
    read = alert_stream(first.name, "card")
    of_alerts = {"kind": "stateful", "alerts_of": first.name, "key": "card"}
    second = new_detector(kafka, Detector(detect, settings=Settings), tmp_path, read, **of_alerts)
    given = [event(n, f"{first.name}-{n % 2}", "150.00", timedelta(seconds=n)) for n in range(24)]
    send(kafka, given[:12])
    run_until_crash(first, kafka, spark, tmp_path / "first", 1)
    run_until_crash(second, kafka, spark, tmp_path / "second", 1)
    assert len(alerts(kafka, second.name)) == 4
    with running(first, kafka, None, tmp_path / "first", generation=2):
        send(kafka, given[12:])
        wait_for(lambda: len(alerts(kafka, first.name)) >= 24, "the alerts of the first")
    with running(second, kafka, spark, tmp_path / "second", generation=2):
        wait_for(lambda: len(alerts(kafka, second.name)) >= 8, "the alerts of the second")
    raised = alerts(kafka, first.name)
    assert len({each["alert_id"] for each in raised}) == len(raised) == 24
    no_frame: Any = None
    in_order = sorted(raised, key=lambda each: each["event_time"])
    plain = run_fold(detect(no_frame, Settings(), {}), Settings(), map(event_of, in_order), "card", read)
    expected = {
        ids.alert_id(second.name, "card", outcome.event.entity, outcome.event.event_id): outcome.alert.reason
        for outcome in plain
        if isinstance(outcome, Raised) and outcome.event is not None
    }
    found = alerts(kafka, second.name)
    assert len(found) == len(expected) == 8
    assert {each["alert_id"]: each["reason"] for each in found} == expected
    assert {each for alert in found for each in alert["evidence"]["event_ids"]} <= {each["alert_id"] for each in raised}
    traces = [
        {dict(record.headers)["traceparent"] for record in committed(kafka, kafka.topics.detector(name).alerts)}
        for name in (second.name, first.name)
    ]
    assert traces[0] <= traces[1], "one trace leads from the raw record to the last alert"
    tried = backtest(second, JobSettings(), kafka, timedelta(minutes=30))
    assert (tried.same, tried.new, tried.lost, tried.dead_letters) == (8, [], [], [])


def _shadow_ids(
    loaded: LoadedDetector, kafka: KafkaSettings, spark: SparkSession, work: Path, release: str, size: int
) -> set[bytes]:
    """The alert ids of a release alongside the live one, from the live one's offsets on in batches of `size`."""
    smaller = replace(loaded, declaration=loaded.declaration.model_copy(update={"max_batch": size}))
    ensure_topics(kafka, kafka.topics.shadow(loaded.name, release).contracts())
    topic = loaded.stream.events(kafka.topics)
    start = {partition: offset for partition, (offset, _) in group_offsets(kafka, loaded.name, topic).items()}
    move(kafka, f"{loaded.name}@{release}", start, topic)
    end = sum(clients.ends(kafka, topic).values())
    with running(smaller, kafka, spark, work, live=False, release=release) as run:
        wait_for(lambda: sum(run.runner.offsets.values()) >= end, "the end of the topic")
    found = committed(kafka, kafka.topics.shadow(loaded.name, release).alerts)
    return {dict(record.headers)["ce_id"] for record in found}
