"""`lozenge why`: one alert from its raw record to each delivery, out of real topics and a real store."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from lozenge.contracts.avro import Codec
from lozenge.contracts.partitioner import partition_of
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.streams.definition import StreamDefinition
from lozenge_downstream.api import api
from lozenge_downstream.api.server import ApiServer
from lozenge_downstream.model import ReceivedRecord
from lozenge_downstream.store.deliveries import Attempt
from lozenge_downstream.store.tables import DUE
from tests.deploy.command import ROOT, invoke
from tests.downstream.conftest import Desk, alert_fields
from tests.integration.harness import committed, event
from tests.merged_streams import BY_CARD
from tests.streams import AUTH, RAW_JSON, event_codec

DETECTOR = "asked_why"
CARD = "card_asked"


@pytest.fixture
def desk(kafka: KafkaSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A notifier's store and API, where the verb looks for it."""
    desk = Desk(f"sqlite:///{tmp_path / 'store.db'}", kafka.topics)
    desk.routing(route={"channels": ["ops"], "group_by": ["entity"]})
    with ApiServer(api(desk.store, desk.pipeline, lambda: None, "", None), "127.0.0.1:0") as serving:
        monkeypatch.setenv("LOZENGE_NOTIFIER_URL", f"http://127.0.0.1:{serving.port}")
        yield desk
    desk.store.close()


@pytest.fixture
def kafka(kafka: KafkaSettings) -> KafkaSettings:
    ensure_topics(kafka, kafka.topics.detector(DETECTOR).contracts())
    return kafka


def written(kafka: KafkaSettings, topic: str, value: bytes) -> tuple[str, int, int]:
    """The position of a record after it was written."""
    positions: list[tuple[str, int, int]] = []
    producer = Producer(kafka.client())
    partition = partition_of(CARD.encode(), kafka.topics.partitions)
    delivered: Callable[..., None] = lambda _, m: positions.append((m.topic(), m.partition(), m.offset()))  # noqa: E731
    producer.produce(topic, value, CARD.encode(), partition, on_delivery=delivered)
    assert producer.flush(30) == 0
    return positions[0]


@pytest.mark.parametrize("read", [AUTH, BY_CARD], ids=["one stream", "several streams"])
def test_the_whole_path_of_an_alert_is_shown(kafka: KafkaSettings, desk: Desk, read: StreamDefinition) -> None:
    ensure_topics(kafka, BY_CARD.topics(kafka.topics, ()))
    raw = written(kafka, kafka.topics.prefixed(RAW_JSON), b"{}")
    coordinates = {"topic": raw[0], "partition": raw[1], "offset": raw[2]}
    processed = event(1 + bool(read.members), card=CARD, amount="300.00")
    event_position = written(
        kafka, read.events(kafka.topics), event_codec().encode(processed | {"raw": processed["raw"] | coordinates})
    )
    fields: dict[str, Any] = alert_fields(1, DETECTOR) | {
        "entity": {"type": "card", "id": CARD},
        "trigger": {"partition": event_position[1], "offset": event_position[2]},
        "evidence": {"event_ids": [processed["event_id"]], "values": {}},
    }
    value = Codec.of("alert").encode(fields)
    position = written(kafka, kafka.topics.detector(DETECTOR).alerts, value)
    desk.take(ReceivedRecord(*position, CARD.encode(), value, []))
    assert len(committed(kafka, kafka.topics.detector(DETECTOR).alerts)) >= 1
    with desk.store.transaction() as t:
        t.deliveries.settle([Attempt(delivery, DUE, desk.now, "HTTP 503") for delivery in t.deliveries.due("ops", 1)])

    environment = kafka.variables
    run = invoke("why", fields["alert_id"], cwd=ROOT, **environment)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    order = ["raw record", "event", "alert", "received", "case", "notified", "attempt failed", "delivery"]
    found = [next((what for what in order if f"  {what}  " in line), None) for line in lines]
    assert [what for what in found if what] == order, run.stdout
    assert f"{raw[0]} {raw[1]}:{raw[2]}" in run.stdout
    assert f"{event_position[0]} {event_position[1]}:{event_position[2]}" in run.stdout
    assert "300.00 EUR" in run.stdout
    assert "channel ops" in run.stdout
    assert "HTTP 503  " in run.stdout

    (answer,) = json.loads(invoke("why", fields["alert_id"], "-o", "json", cwd=ROOT, **environment).stdout)
    assert [step["what"] for step in answer["origin"]] == ["raw record", "event", "alert"]
    assert answer["cases"][0]["notification"]["deliveries"][0]["channel"] == "ops"
    assert answer["cases"][0]["notification"]["failed_attempts"][0]["error"] == "HTTP 503"


def test_records_deleted_by_retention_are_reported_as_such(kafka: KafkaSettings, desk: Desk) -> None:
    value = Codec.of("alert").encode(alert_fields(2, DETECTOR))
    desk.take(ReceivedRecord(kafka.topics.detector(DETECTOR).alerts, 0, 10_000_000, b"k", value, []))
    run = invoke("why", alert_fields(2, DETECTOR)["alert_id"], cwd=ROOT, **kafka.variables)
    assert run.returncode == 0, run.stderr
    assert "no longer in its topic" in run.stdout


def test_an_alert_that_never_came_is_not_known(kafka: KafkaSettings, desk: Desk) -> None:
    run = invoke("why", "unknown", cwd=ROOT, **kafka.variables)
    assert (run.returncode, "no alert 'unknown' was received" in run.stderr) == (2, True)
