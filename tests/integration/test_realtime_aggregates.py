"""Aggregates in Real-Time Mode: crossings at once, each once whatever ends the job, and the same as batch by batch."""

import os
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge import Detector, Settings, Tables, alert, topics
from lozenge.admin import ensure_topics
from lozenge.kafka import KafkaSettings
from lozenge.loading import Loaded
from lozenge.reading import bounds
from tests.integration.conftest import Broker
from tests.integration.harness import (
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

pytestmark = pytest.mark.integration

CARDS = [f"card_{n}" for n in range(20)]
DECLARED = {"kind": "aggregate", "mode": "realtime", "trigger": "5s", "lateness": "10m", "window": "10m"}


def velocity(events: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
    """Three bands. A card of more than ten in a window has a score that no alert may have."""
    uses = F.sort_array(F.collect_set("event_id"))
    groups = events.groupBy(F.window("event_time", "10 minutes"), "card_id").agg(uses.alias("uses"))
    bands = F.filter(F.array(F.lit(3), F.lit(5), F.lit(11)), lambda band: band <= F.size("uses"))
    return groups.withColumn("band", F.explode(bands)).select(
        *alert(
            entity=F.col("card_id"),
            window=F.col("window"),
            band=F.col("band"),
            at=F.col("window.start"),
            reason=F.concat(F.lit("at least "), F.col("band").cast("string")),
            score=F.col("band") / F.lit(10),
            evidence=F.slice("uses", 1, F.col("band")),
            values={"band": F.col("band")},
            labels={"team": F.lit("cards")},
        )
    )


@pytest.fixture
def kafka(broker: Broker) -> KafkaSettings:
    return KafkaSettings(bootstrap=broker.bootstrap)


def detector(kafka: KafkaSettings, folder: Path, **declared: Any) -> Loaded:
    return new_detector(kafka, Detector(velocity, settings=Settings), folder, **DECLARED | declared)


def uses(first: int, each: int, cards: list[str] = CARDS) -> list[dict[str, Any]]:
    """So many events of each card, all in one window; their ids begin with the number `first`."""
    return [event(first + n, card) for n, card in enumerate(card for _ in range(each) for card in cards)]


def crossings(kafka: KafkaSettings, name: str) -> Counter[tuple[str, str]]:
    """How often each band of each card was told."""
    return Counter((told["entity"]["id"], told["evidence"]["values"]["band"]) for told in alerts(kafka, name))


def each_once(*bands: str, cards: list[str] = CARDS) -> Counter[tuple[str, str]]:
    return Counter((card, band) for card in cards for band in bands)


def test_crossings_come_at_once_and_once_though_the_group_goes_on(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = detector(kafka, tmp_path, trigger="15s")
    with running(loaded, kafka, spark, tmp_path) as run:
        wait_for(lambda: group_offsets(kafka, loaded.name)[0][1] == "1/-/-1", "the claim")
        before = group_offsets(kafka, loaded.name)
        send(kafka, uses(0, each=4))
        wait_for(lambda: crossings(kafka, loaded.name) == each_once("3"), "the first band of each card")
        send(kafka, uses(100, each=4))
        wait_for(lambda: crossings(kafka, loaded.name) == each_once("3", "5"), "the second band of each card")
        told_before_the_commit = group_offsets(kafka, loaded.name) == before
        wait_for(lambda: sum(run.runner.offsets.values()) == sum(o for o, _ in before.values()) + 160, "the commit")
        samples = run.runner._metrics.snapshot()["samples"]
    assert told_before_the_commit
    checkpoint = run.runner._checkpoint.id
    assert {stamp.rpartition("/")[0] for _, stamp in group_offsets(kafka, loaded.name).values()} == {f"1/{checkpoint}"}
    assert crossings(kafka, loaded.name) == each_once("3", "5")
    assert samples["lozenge_emitted_total"] == 40
    assert samples["lozenge_offsets_committed_total"] == 160


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
def test_what_was_told_before_a_stop_is_not_told_again(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path, guarantee: str
) -> None:
    """Its counts go on in Spark's checkpoint from the last commit, also where Spark has ended a batch behind that."""
    loaded = detector(kafka, tmp_path, guarantee=guarantee)
    send(kafka, uses(0, each=2))
    start = sum(offset for offset, _ in group_offsets(kafka, loaded.name).values())
    with running(loaded, kafka, spark, tmp_path) as run:
        wait_for(lambda: sum(run.runner.offsets.values()) == start + 40, "the commit of two of each card")
    longer = Loaded(loaded.name, "1.0.0", loaded.detector, _changed(loaded, trigger=timedelta(minutes=5)), tmp_path)
    for generation in (2, 3):  # neither gets as far as a commit
        send(kafka, uses(100 * generation, each=2))
        with running(longer, kafka, spark, tmp_path, generation=generation) as run:
            bands = ("3",) if generation == 2 else ("3", "5")
            wait_for(lambda bands=bands: crossings(kafka, loaded.name) == each_once(*bands), "the band")  # type: ignore[misc]
            assert run.runner._checkpoint.last_planned() >= 0
    assert sum(offset for offset, _ in group_offsets(kafka, loaded.name).values()) == start + 40
    assert crossings(kafka, loaded.name) == each_once("3", "5")


def _changed(loaded: Loaded, **fields: Any) -> Any:
    return loaded.declaration.model_copy(update=fields)
