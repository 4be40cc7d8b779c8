"""Jobs in Real-Time Mode die with their JVM while events come: what was published is not published again."""

import os
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lozenge.detector.loader import find
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from tests.integration.harness import alerts, begin_at_the_end, event, group_offsets, running, send, wait_for
from tests.integration.job.killing import detector_folder, process_of

pytestmark = [pytest.mark.integration, pytest.mark.nightly, pytest.mark.usefixtures("no_short_batches")]

CARDS = [f"card_{n}" for n in range(500)]
RULE = """
from pyspark.sql import functions as F

from lozenge import Detector, Settings, alert


def detect(events, settings, tables):
    return events.where(F.col("amount") > 100).select(*alert(reason=F.lit("over")))


detector = Detector(detect, settings=Settings)
"""
AGGREGATE = """
from pyspark.sql import functions as F

from lozenge import Detector, Settings, alert


def detect(events, settings, tables):
    uses = F.size(F.collect_set("event_id"))
    groups = events.groupBy(F.window("event_time", "10 minutes"), "card_id").agg(uses.alias("uses"))
    return groups.withColumn("band", F.explode(F.sequence(F.lit(1), "uses"))).select(
        *alert(
            entity=F.col("card_id"),
            window=F.col("window"),
            band=F.col("band"),
            at=F.col("window.start"),
            reason=F.lit("used"),
            values={"band": F.col("band")},
        )
    )


detector = Detector(detect, settings=Settings)
"""


class Rounds:
    """Events of every card; each event raises one alert of each detector."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka
        self.sent = 0

    def send(self) -> None:
        """One more event of each card."""
        first = self.sent * len(CARDS)
        send(self._kafka, [event(first + n, card, amount="150.00") for n, card in enumerate(CARDS)])
        self.sent += 1

    @property
    def alerts(self) -> int:
        """How many each detector has to publish."""
        return self.sent * len(CARDS)


def test_alerts_published_before_a_kill_are_not_published_again(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    """A rule and an aggregate die with the JVM that they share, in the middle of a burst and long before a commit."""
    window = {"lateness": "10m", "window": "10m"}
    rule = detector_folder(tmp_path, RULE, {"kind": "rule", "mode": "realtime", "trigger": "5m"})
    aggregate = detector_folder(
        tmp_path, AGGREGATE, {"kind": "aggregate", "mode": "realtime", "trigger": "5m"} | window
    )
    for folder, kind in ((rule, "rule"), (aggregate, "aggregate")):
        ensure_topics(kafka, kafka.topics.detector(folder.name).contracts())
        begin_at_the_end(kafka, folder.name, kind)
    names, log, rounds = (rule.name, aggregate.name), tmp_path / "log", Rounds(kafka)
    before = {name: _offsets(kafka, name) for name in names}
    arguments = ["tests.integration.job.jobs_of_one_jvm", *(f"{folder}{os.sep}" for folder in (rule, aggregate))]
    with process_of(kafka, arguments, tmp_path, 1, log) as process:

        def all_publish() -> bool:
            assert process.poll() is None, log.read_text()
            publishing = [bool(alerts(kafka, name)) for name in names]
            if any(publishing):
                rounds.send()  # what dies has more to do
            return all(publishing)

        wait_for(lambda: log.read_text().count("query starts") == 2 or process.poll() is not None, "their starts")
        for _ in range(3):
            rounds.send()
        wait_for(all_publish, "alerts of both")
    assert {name: _offsets(kafka, name) for name in names} == before, "both were to die before their first commit"
    rounds.send()
    for folder in (rule, aggregate):
        with running(find(f"{folder}{os.sep}"), kafka, spark, tmp_path, generation=2):
            wait_for(lambda name=folder.name: len(alerts(kafka, name)) >= rounds.alerts, "all alerts")  # type: ignore[misc]
    ids = Counter(alert["evidence"]["event_ids"][0] for alert in alerts(kafka, rule.name))
    assert ids == Counter(f"event-{n}" for n in range(rounds.alerts))
    bands = Counter((a["entity"]["id"], a["evidence"]["values"]["band"]) for a in alerts(kafka, aggregate.name))
    assert bands == Counter((card, str(band)) for card in CARDS for band in range(1, rounds.sent + 1))


def _offsets(kafka: KafkaSettings, name: str) -> dict[int, int]:
    return {partition: offset for partition, (offset, _) in group_offsets(kafka, name).items()}
