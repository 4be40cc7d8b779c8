"""PagerDuty: what arrives at an events API on loopback."""

from collections.abc import Callable

import pytest

from lozenge_downstream.channels.base.channel import Message, Sent
from lozenge_downstream.model import ReceivedRecord
from tests.downstream.channels.conftest import receiving, send

MakeRecord = Callable[..., ReceivedRecord]
LOOPBACK = {"networks": ["127.0.0.0/8"]}
LINK = "https://lozenge.example.com/feedback/a.b-c?d=1&e=2"
TITLE = "<b>Large amount & more</b>"


def test_pagerduty_gets_one_incident_for_a_case(message: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PD_KEY", "k" * 32)
    fields = dict(message.fields)
    with receiving(202) as (url, got):
        channel = {"type": "pagerduty", "key": {"env": "PD_KEY"}, "url": f"{url}/v2/enqueue", **LOOPBACK}
        assert send(message, **channel) == Sent()
        assert send(Message("2", "", fields | {"status": "resolved"}), **channel) == Sent()
    first, last = (body for _, body in got)
    assert (first["event_action"], last["event_action"]) == ("trigger", "resolve")
    assert first["dedup_key"] == last["dedup_key"] == fields["case_id"]
    assert (first["payload"]["severity"], first["payload"]["source"]) == ("error", "card:card-7")


def test_pagerduty_gets_the_link_to_the_feedback_page(
    message_with_links: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PD_KEY", "k" * 32)
    with receiving(202) as (url, got):
        assert send(message_with_links, type="pagerduty", key={"env": "PD_KEY"}, url=url, **LOOPBACK) == Sent()
    ((_, body),) = got
    assert body["links"] == [{"href": LINK, "text": TITLE}]
