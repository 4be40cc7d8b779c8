"""Which deliveries a worker gets, and what is recorded of its attempts."""

from collections.abc import Callable, Sequence

import pytest

from lozenge.apps import DOWNSTREAM
from lozenge.contracts.topics import Topics
from lozenge.metrics.app_metrics import NotifierMetrics
from lozenge_downstream.delivery.stored_deliveries import StoredDeliveries
from lozenge_downstream.model import Outgoing, ReceivedRecord
from lozenge_downstream.store.deliveries import Attempt
from lozenge_downstream.store.tables import DUE, FAILED, SENT
from tests.downstream.conftest import Desk

TOPICS = Topics()
MakeRecord = Callable[..., ReceivedRecord]


@pytest.fixture
def metrics() -> NotifierMetrics:
    return NotifierMetrics("test")


@pytest.fixture
def deliveries(desk: Desk, metrics: NotifierMetrics) -> StoredDeliveries:
    """Those of the channel `ops`, to which the routing file sends everything."""
    desk.routing(route={"channels": ["ops", "chat"]})
    return StoredDeliveries("ops", desk.store, TOPICS, metrics)


def attempted(deliveries: StoredDeliveries, state: str, due_at: float, error: str | None = None) -> Attempt:
    [delivery] = deliveries.due(10)
    return Attempt(delivery, state, due_at, error)


def dead_letters(desk: Desk) -> Sequence[Outgoing]:
    with desk.store.reading() as t:
        return [each for each in t.outbox.pending(100) if each.topic == TOPICS.dead_letters(DOWNSTREAM)]


def counted(metrics: NotifierMetrics, outcome: str) -> float:
    name = f"lozenge_deliveries_total{{channel=ops,outcome={outcome}}}"
    return float(metrics.snapshot()["samples"][name])


def test_a_worker_gets_what_is_due_on_its_channel_and_no_more_than_it_takes(
    desk: Desk, record: MakeRecord, deliveries: StoredDeliveries
) -> None:
    desk.take(record(0), record(1))
    assert [delivery.channel for delivery in deliveries.due(10)] == ["ops", "ops"]
    assert len(deliveries.due(1)) == 1


def test_the_series_of_a_channel_begin_at_zero(deliveries: StoredDeliveries, metrics: NotifierMetrics) -> None:
    assert [counted(metrics, outcome) for outcome in ("sent", "retried", "failed")] == [0, 0, 0]


def test_what_was_sent_is_counted_and_not_due_again(
    desk: Desk, record: MakeRecord, deliveries: StoredDeliveries, metrics: NotifierMetrics
) -> None:
    desk.take(record())
    deliveries.record([attempted(deliveries, SENT, desk.now)])
    assert deliveries.due(10) == []
    assert (counted(metrics, "sent"), dead_letters(desk)) == (1, [])


def test_a_retry_is_due_at_its_time_and_is_no_dead_letter(
    desk: Desk, record: MakeRecord, deliveries: StoredDeliveries, metrics: NotifierMetrics
) -> None:
    desk.take(record())
    deliveries.record([attempted(deliveries, DUE, desk.now + 60, "HTTP 503")])
    assert deliveries.due(10) == []
    assert (counted(metrics, "retried"), dead_letters(desk)) == (1, [])
    desk.now += 60
    assert [delivery.attempts for delivery in deliveries.due(10)] == [1]


def test_a_failed_delivery_is_a_dead_letter_of_its_notification_and_says_why(
    desk: Desk, record: MakeRecord, deliveries: StoredDeliveries, metrics: NotifierMetrics
) -> None:
    desk.take(record())
    with desk.store.reading() as t:
        [sent] = t.outbox.pending(10)
    deliveries.record([attempted(deliveries, FAILED, desk.now, "HTTP 400")])
    [dead] = dead_letters(desk)
    headers = {name: value or b"" for name, value in dead.headers}
    assert (dead.key, dead.value) == (sent.key, sent.value)
    assert headers["__connect.errors.topic"] == TOPICS.notifications.encode()
    assert headers["__connect.errors.stage"] == b"deliver"
    assert headers["__connect.errors.exception.message"] == b"channel ops: HTTP 400 (1 attempts)"
    assert counted(metrics, "failed") == 1
    assert metrics.snapshot()["samples"]["lozenge_dead_letters_total{stage=deliver}"] == 1
    assert deliveries.due(10) == []


def test_a_channel_that_refuses_everything_is_disabled_and_its_deliveries_wait(
    desk: Desk, record: MakeRecord, deliveries: StoredDeliveries
) -> None:
    desk.take(record())
    [delivery] = deliveries.due(10)
    deliveries.record([Attempt(delivery, DUE, desk.now, "HTTP 410", disable=True)])
    assert deliveries.due(10) == []
    with desk.store.transaction() as t:
        assert t.deliveries.disabled() == {"ops": "HTTP 410"}
        assert [each.channel for each in t.deliveries.due("chat", 10)] == ["chat"]
        t.deliveries.enable("ops")
    assert deliveries.due(10) == [
        delivery.__class__("ops", delivery.notification_id, delivery.body, 1, delivery.detected_at)
    ]
