"""A backtest shows what a detector would have raised compared with the live release, and leaves no trace."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge import Alert, Detector, Event, Fold, Settings, State, Tables, alert, fold
from lozenge.contracts.avro import Codec
from lozenge.detector.loader import LoadedDetector
from lozenge.job.settings import JobSettings
from lozenge.job.tools.backtest import BacktestResult, backtest
from lozenge.kafka.schema_topic import announce
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import bounds
from tests.integration import clients
from tests.integration.harness import (
    alerts,
    event,
    group_offsets,
    new_detector,
    running,
    send,
    wait_for,
    wider_events,
)

pytestmark = pytest.mark.integration


class Limit(Settings):
    limit: float = 100.0


class Count(State):
    n: int = 0


def over(events: DataFrame, settings: Limit, tables: Tables) -> DataFrame:
    risky = events.withColumn("number", F.col("merchant_id").cast("int"))
    return risky.where((F.col("amount") > settings.limit) & (F.col("number") > 0)).select(*alert(reason=F.lit("over")))


def step(state: Count, event: Event, settings: Limit) -> Iterator[Alert]:
    state.n += 1
    if event.amount > settings.limit:
        yield Alert(reason=f"number {state.n}")


def counting(events: DataFrame, settings: Limit, tables: Tables) -> Fold[Count]:
    return fold(events, by="card_id", state=Count, step=step, expires=timedelta(days=1))


def burst(events: DataFrame, settings: Limit, tables: Tables) -> DataFrame:
    counted = events.groupBy(F.window("event_time", "10 minutes"), "card_id").agg(
        F.count("*").alias("n"), F.max("event_time").alias("last")
    )
    return counted.where(F.col("n") >= settings.limit).select(
        *alert(reason=F.lit("burst"), entity=F.col("card_id"), at=F.col("last"), window=F.col("window"), band="x")
    )


SLACK_SECONDS = 2.0
"""How long a trial may take to ask for its own time, on a busy machine too."""


def a_moment() -> float:
    """Behind all that was sent and before all that will be, by more than a trial takes to ask for its own time."""
    time.sleep(SLACK_SECONDS + 0.3)
    return time.time() - SLACK_SECONDS


def nothing_before(kafka: KafkaSettings) -> float:
    """A moment before all that will be sent, and no retained event is older, so nobody need wait for it."""
    clients.trim(kafka, kafka.topics.events("auth"), clients.ends(kafka, kafka.topics.events("auth")))
    return time.time() - SLACK_SECONDS


def tried(loaded: LoadedDetector, kafka: KafkaSettings, began: float, **settings: Any) -> BacktestResult:
    order = JobSettings(settings=Limit(**settings).model_dump_json())
    return backtest(loaded, order, kafka, timedelta(seconds=time.time() - began))


def test_a_rule_with_other_settings_is_compared_with_its_live_release(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = new_detector(kafka, Detector(over, settings=Limit), tmp_path)
    began = a_moment()
    amounts = ["60.00"] * 10 + ["150.00"] * 10
    send(kafka, [event(n, card=f"card_{n}", amount=a, merchant_id="7") for n, a in enumerate(amounts)])
    with running(loaded, kafka, spark, tmp_path, release="r7"):
        wait_for(lambda: len(alerts(kafka, loaded.name)) >= 10, "10 alerts")
    emitted = kafka.topics.detector(loaded.name).alerts
    before = group_offsets(kafka, loaded.name), bounds(kafka, emitted, kafka.topics.partitions)
    outcome = tried(loaded, kafka, began)
    assert (outcome.release, outcome.events) == ("r7", 20)
    assert (outcome.processed, outcome.cpu_seconds > 0) == (20, True)
    assert (outcome.alerts, outcome.same, outcome.new, outcome.lost) == (10, 10, [], [])
    outcome = tried(loaded, kafka, began, limit=50)
    assert (outcome.alerts, outcome.same, len(outcome.new), outcome.lost) == (20, 10, 10, [])
    outcome = tried(loaded, kafka, began, limit=200)
    assert (outcome.alerts, outcome.new, len(outcome.lost)) == (0, [], 10)
    assert {alert.reason for alert in outcome.lost} == {"over"}
    after = group_offsets(kafka, loaded.name), bounds(kafka, emitted, kafka.topics.partitions)
    assert before == after, "a trial writes nothing"


def test_records_that_cannot_be_processed_are_reported(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = new_detector(kafka, Detector(over, settings=Limit), tmp_path)
    began = nothing_before(kafka)
    send(kafka, [event(n, amount="150.00", merchant_id="poison" if n == 3 else "7") for n in range(9)])
    outcome = tried(loaded, kafka, began)
    assert (outcome.release, outcome.alerts, len(outcome.dead_letters)) == (None, 8, 1)
    before_retention = backtest(loaded, JobSettings(), kafka, timedelta(days=60))
    assert before_retention.oldest is not None
    oldest = datetime.fromisoformat(before_retention.oldest)
    assert datetime.now(UTC) - timedelta(hours=1) < oldest < datetime.now(UTC)


def test_events_of_an_upstream_that_gained_a_field_are_processed(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = new_detector(kafka, Detector(over, settings=Limit), tmp_path)
    began, wider = nothing_before(kafka), wider_events()
    announce(kafka, [wider])
    send(kafka, [event(n, amount="150.00", merchant_id="7", wallet="w") for n in range(3)], Codec(wider))
    outcome = tried(loaded, kafka, began)
    assert (outcome.alerts, outcome.dead_letters) == (3, [])


def test_a_fold_is_warm_before_its_alerts_count(kafka: KafkaSettings, spark: SparkSession, tmp_path: Path) -> None:
    loaded = new_detector(kafka, Detector(counting, settings=Limit), tmp_path, kind="stateful")
    card = f"{loaded.name}_card"
    before = time.time()
    send(kafka, [event(n, card=card, amount="150.00") for n in range(3)])
    began = a_moment()  # what was sent lies before the trial's time, and within its time to warm up:
    send(kafka, [event(n, card=card, amount="150.00") for n in range(3, 5)])
    time.sleep(began - before + SLACK_SECONDS + 0.3)  # for that is as long again
    outcome = tried(loaded, kafka, began)
    assert [alert.reason for alert in outcome.new if alert.entity == card] == ["number 4", "number 5"]
    assert outcome.processed > outcome.events, "what it was warmed up with costs as much"


def test_an_aggregate_is_backtested_over_retained_events(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = new_detector(
        kafka, Detector(burst, settings=Limit), tmp_path, kind="aggregate", lateness="1m", window="10m"
    )
    began = time.time()
    at = timedelta(seconds=time.time()) - timedelta(seconds=event(0)["event_time"].timestamp())
    send(kafka, [event(n, card=f"{loaded.name}_{n % 3}", at=at) for n in range(10)])
    outcome = tried(loaded, kafka, began - 1, limit=4)
    assert [alert.entity for alert in outcome.new if alert.entity.startswith(loaded.name)] == [f"{loaded.name}_0"]
