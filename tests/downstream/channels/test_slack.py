"""Slack: what arrives at a webhook on loopback."""

from collections.abc import Callable

import pytest

from lozenge_downstream.channels.base.channel import Message, Refused, Result, Retry, Sent
from lozenge_downstream.model import ReceivedRecord
from tests.downstream.channels.conftest import receiving, send

MakeRecord = Callable[..., ReceivedRecord]
LOOPBACK = {"networks": ["127.0.0.0/8"]}
LINK = "https://lozenge.example.com/feedback/a.b-c?d=1&e=2"


@pytest.mark.parametrize(("status", "result"), [(200, Sent()), (400, Refused("HTTP 400")), (404, Retry("HTTP 404"))])
def test_slack_gets_text_that_is_no_markup(
    message: Message, status: int, result: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving(status) as (url, got):
        monkeypatch.setenv("SLACK", f"{url}/services/T/B/x")
        assert send(message, type="slack", url={"env": "SLACK"}, channel="#fraud", **LOOPBACK) == result
    ((path, body),) = got
    assert path == "/services/T/B/x"
    assert body["text"] == "&lt;b&gt;Large\namount &amp; more&lt;/b&gt; (opened)"
    assert body["channel"] == "#fraud"
    assert body["attachments"][0]["fields"][1] == {"title": "About", "value": "card:card-7", "short": True}


def test_slack_gets_the_link_to_the_feedback_page(message_with_links: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as (url, got):
        monkeypatch.setenv("SLACK", url)
        assert send(message_with_links, type="slack", url={"env": "SLACK"}, **LOOPBACK) == Sent()
    ((_, body),) = got
    assert [shown["text"] for shown in body["attachments"][1:]] == [
        "<https://lozenge.example.com/feedback/a.b-c?d=1&amp;e=2|&lt;b&gt;Large amount &amp; more&lt;/b&gt;>, "
        "right or wrong?"
    ]


@pytest.mark.parametrize(
    ("answer", "taken"),
    [
        (b"ok", True),
        (b"", True),
        (b'{"ok": true}', True),
        (b'{"success":true}', True),
        (b"<b>Thank you</b>", True),
        (b"[]", True),
        (b"no_service", False),
        (b"channel_is_archived\n", False),
        (b'{"ok":false,"error":"channel_not_found"}', False),
        (b'{"success":false,"error":"Invalid integration"}', False),
    ],
    ids=repr,
)
def test_an_error_that_comes_with_status_200_is_not_taken_for_success(
    message: Message, answer: bytes, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving(200, answer=answer) as (url, _):
        monkeypatch.setenv("SLACK", url)
        result = send(message, type="slack", url={"env": "SLACK"}, **LOOPBACK)
    assert result == (Sent() if taken else Retry(f"HTTP 200: {answer.decode().strip()}"))
