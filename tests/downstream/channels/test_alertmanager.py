"""Alertmanager: what arrives at its API on loopback."""

from collections.abc import Callable

import pytest

from lozenge_downstream.channels.alertmanager import alerts
from lozenge_downstream.channels.base.channel import Message, Sent
from lozenge_downstream.model import ReceivedRecord
from tests.downstream.channels.conftest import receiving, send
from tests.downstream.conftest import Desk

MakeRecord = Callable[..., ReceivedRecord]
LOOPBACK = {"networks": ["127.0.0.0/8"]}
LINK = "https://lozenge.example.com/feedback/a.b-c?d=1&e=2"


@pytest.mark.parametrize("below", ["", "/", "/api/v2/alerts", "/api/v2/alerts/", "/am/"])
def test_alertmanager_gets_each_alert_with_its_end(message: Message, below: str) -> None:
    with receiving() as (url, got):
        assert send(message, type="alertmanager", url=url + below, **LOOPBACK) == Sent()
    ((path, (alert,)),) = got
    assert path == ("/am/api/v2/alerts" if below == "/am/" else "/api/v2/alerts")
    assert alert["labels"]["alertname"] == "large_amount"
    assert alert["startsAt"] < alert["endsAt"]


def test_alertmanager_gets_labels_under_names_that_it_takes(desk: Desk, record: MakeRecord) -> None:
    """Else it answers 400 to all of it; and no label of a detector's takes the place of one of the platform's."""
    named = {"dotted.label": "1", "7up": "2", "": "3", "größe": "4", "as_is": "5"}
    taken = {"alertname": "mine", "alert_id": "mine", "entity.type": "mine", "as.is": "mine", "detector": "mine"}
    desk.take(record(labels=named | taken))
    (notification,) = desk.notifications()
    with receiving() as (url, got):
        assert send(Message("1", "", notification), type="alertmanager", url=url, **LOOPBACK) == Sent()
    ((_, (alert,)),) = got
    assert alert["labels"] == {
        "alertname": "large_amount",
        "alert_id": notification["alert_ids"][0],
        "detector": "large_amount",
        "release": "r1",
        "severity": "high",
        "entity_type": "card",
        "entity": "card:card-7",
        "dotted_label": "1",
        "_7up": "2",
        "_": "3",
        "gr__e": "4",
        "as_is": "5",
    }


def test_alertmanager_gets_the_link_to_the_feedback_page(message_with_links: Message) -> None:
    with receiving() as (url, got):
        assert send(message_with_links, type="alertmanager", url=url, **LOOPBACK) == Sent()
    ((_, (alert, _)),) = got
    assert alert["annotations"]["feedback_url"] == LINK


@pytest.mark.parametrize("status", ["opened", "resolved"])
def test_no_alert_ends_before_it_starts_since_alertmanager_refuses_that(message: Message, status: str) -> None:
    (alert,) = message.fields["alerts"]
    end = message.fields["created_at"] if status == "resolved" else alert["resolves_at"]
    for event_time in ("2999-01-01T00:00:00Z", end.replace("Z", ".5Z"), end):
        given = {**message.fields, "status": status, "alerts": [alert | {"event_time": event_time}]}
        (there,) = alerts(given)
        assert (there["startsAt"], there["endsAt"]) == (end, end)
