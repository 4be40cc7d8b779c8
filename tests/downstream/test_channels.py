"""Each channel against a real receiver of its kind on loopback: what arrives there, and what its answers mean."""

import asyncio
import email
import email.policy
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller

from lozenge_deploy.local.embedded_broker import free_port
from lozenge_downstream.channels.base.channel import Drop, Message, Result, Retry, Sent
from lozenge_downstream.channels.base.secrets import SecretUnusable
from lozenge_downstream.channels.email import compose
from lozenge_downstream.model import Record
from lozenge_downstream.routing.config import Routing
from tests.downstream.conftest import Desk

MakeRecord = Callable[..., Record]
LOOPBACK = {"networks": ["127.0.0.0/8"]}
LINK = "https://lozenge.example.com/feedback/a.b-c?d=1&e=2"
TITLE = "<b>Large amount & more</b>"


@pytest.fixture
def message(desk: Desk, record: MakeRecord) -> Message:
    """What a channel is given for one alert with an awkward title."""
    desk.routing(route={"group_by": ["entity"]})
    desk.take(record(title="<b>Large\namount & more</b>"))
    (told,) = desk.told()
    return Message(told["notification_id"], json.dumps({"data": told}), told)


@pytest.fixture
def judged(message: Message) -> Message:
    """The same from a notifier with pages on which alerts are judged, and an alert beside it whose link is too long."""
    (alert,) = message.fields["alerts"]
    alerts = [alert | {"feedback_url": LINK}, alert | {"feedback_url": LINK + "x" * 1_000}]
    told = {**message.fields, "alerts": alerts}
    return Message(message.id, json.dumps({"data": told}), told)


def send(message: Message, **channel: Any) -> Result:
    made = Routing.model_validate({"channels": {"c": channel}}).channels["c"]

    async def once() -> Result:
        async with made.sender() as sender:
            return await sender.send(message)

    return asyncio.run(once())


@contextmanager
def receiving(status: int = 200, location: str | None = None) -> Iterator[tuple[str, list[Any]]]:
    """A receiver of JSON that answers `status`, and where else to go."""
    got: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((self.path, json.loads(self.rfile.read(int(self.headers["content-length"])))))
            self.send_response(status)
            self.send_header("content-length", "0")
            if location:
                self.send_header("location", location)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(("status", "result"), [(200, Sent()), (404, Drop("HTTP 404")), (429, Retry("HTTP 429"))])
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


def test_pagerduty_gets_one_incident_for_a_case(message: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PD_KEY", "k" * 32)
    told = dict(message.fields)
    with receiving(202) as (url, got):
        channel = {"type": "pagerduty", "key": {"env": "PD_KEY"}, "url": f"{url}/v2/enqueue", **LOOPBACK}
        assert send(message, **channel) == Sent()
        assert send(Message("2", "", told | {"status": "resolved"}), **channel) == Sent()
    first, last = (body for _, body in got)
    assert (first["event_action"], last["event_action"]) == ("trigger", "resolve")
    assert first["dedup_key"] == last["dedup_key"] == told["case_id"]
    assert (first["payload"]["severity"], first["payload"]["source"]) == ("error", "card:card-7")


def test_alertmanager_gets_each_alert_with_its_end(message: Message) -> None:
    with receiving() as (url, got):
        assert send(message, type="alertmanager", url=url, **LOOPBACK) == Sent()
    ((path, (alert,)),) = got
    assert path == "/api/v2/alerts"
    assert alert["labels"]["alertname"] == "large_amount"
    assert alert["startsAt"] < alert["endsAt"]


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # which apprise still imports
@pytest.mark.parametrize(("type", "secret"), [("slack", "url"), ("pagerduty", "key"), ("apprise", "url")])
def test_a_secret_in_a_file_is_read_for_each_message(message: Message, tmp_path: Path, type: str, secret: str) -> None:
    file = tmp_path / "secret"
    with receiving() as (url, got):
        there = url.replace("http://", "json://") if type == "apprise" else url
        given = {"type": type, secret: {"file": str(file)}}
        if type != "apprise":
            given |= LOOPBACK
        if type == "pagerduty":
            given |= {"url": f"{url}/v2/enqueue"}
        file.write_text(f"{there}/first")
        made = Routing.model_validate({"channels": {"c": given}}).channels["c"]

        async def twice() -> list[Result]:
            async with made.sender() as sender:
                first = await sender.send(message)
                file.write_text(f"{there}/second")
                second = await sender.send(message)
                file.unlink()
                with pytest.raises(SecretUnusable, match=f"file {file}: No such file or directory"):
                    await sender.send(message)
                return [first, second]

        assert asyncio.run(twice()) == [Sent(), Sent()]
    used = [body["routing_key"].removeprefix(url) if type == "pagerduty" else path for path, body in got]
    assert used == ["/first", "/second"]


def test_alertmanager_gets_labels_under_names_that_it_takes(desk: Desk, record: MakeRecord) -> None:
    """Else it answers 400 to all of it; and no label of a detector's takes the place of one of the platform's."""
    named = {"dotted.label": "1", "7up": "2", "": "3", "größe": "4", "as_is": "5"}
    taken = {"alertname": "mine", "alert_id": "mine", "entity.type": "mine", "as.is": "mine", "detector": "mine"}
    desk.take(record(labels=named | taken))
    (told,) = desk.told()
    with receiving() as (url, got):
        assert send(Message("1", "", told), type="alertmanager", url=url, **LOOPBACK) == Sent()
    ((_, (alert,)),) = got
    assert alert["labels"] == {
        "alertname": "large_amount",
        "alert_id": told["alert_ids"][0],
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


def test_slack_shows_where_an_alert_is_judged(judged: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as (url, got):
        monkeypatch.setenv("SLACK", url)
        assert send(judged, type="slack", url={"env": "SLACK"}, **LOOPBACK) == Sent()
    ((_, body),) = got
    assert [shown["text"] for shown in body["attachments"][1:]] == [
        "<https://lozenge.example.com/feedback/a.b-c?d=1&amp;e=2|&lt;b&gt;Large amount &amp; more&lt;/b&gt;>, "
        "right or wrong?"
    ]


def test_pagerduty_shows_where_an_alert_is_judged(judged: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PD_KEY", "k" * 32)
    with receiving(202) as (url, got):
        assert send(judged, type="pagerduty", key={"env": "PD_KEY"}, url=url, **LOOPBACK) == Sent()
    ((_, body),) = got
    assert body["links"] == [{"href": LINK, "text": TITLE}]


def test_alertmanager_shows_where_an_alert_is_judged(judged: Message) -> None:
    with receiving() as (url, got):
        assert send(judged, type="alertmanager", url=url, **LOOPBACK) == Sent()
    ((_, (alert, _)),) = got
    assert alert["annotations"]["feedback_url"] == LINK


class Mailbox:
    """Keeps what it is sent, or refuses it with `answer`."""

    def __init__(self, answer: str = "250 OK") -> None:
        self.answer = answer
        self.mails: list[bytes] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        self.mails.append(envelope.content)
        return self.answer


@pytest.mark.parametrize(
    ("answer", "result"),
    [("250 OK", Sent()), ("451 later", Retry("SMTP 451")), ("554 never", Drop("SMTP 554"))],
)
def test_a_mail_is_one_of_its_cases_thread(message: Message, answer: str, result: Result) -> None:
    mailbox = Mailbox(answer)
    port = free_port(0)
    controller = Controller(mailbox, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        addresses = {"from": "lozenge@example.com", "to": ["ops@example.com"]}
        assert send(message, type="email", host="127.0.0.1", port=port, security="none", **addresses) == result
    finally:
        controller.stop()
    mail = email.message_from_bytes(mailbox.mails[0], policy=email.policy.default)
    assert isinstance(mail, EmailMessage)
    assert mail["Subject"] == "[high] <b>Large amount & more</b> (opened)"
    assert mail["Message-ID"] == f"<{message.id}@lozenge.invalid>"
    assert str(message.fields["case_id"]) in mail["References"]
    assert "300.00 EUR is above 220.00" in mail.get_content()


def test_a_mail_shows_where_each_alert_is_judged(judged: Message) -> None:
    text = compose(judged, "lozenge@example.com", ("ops@example.com",)).get_content()
    assert f"{TITLE}, right or wrong?\n{LINK}\n" in text
    assert text.count(LINK) == 1, "nor is a link shown that is too long to be opened"


def test_a_mail_server_that_is_away_is_tried_again(message: Message) -> None:
    addresses = {"from": "lozenge@example.com", "to": ["ops@example.com"]}
    result = send(message, type="email", host="127.0.0.1", port=1, security="none", **addresses)
    assert result == Retry("ConnectionRefusedError: [Errno 111] Connection refused")


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # which apprise still imports
def test_apprise_reaches_what_has_no_channel_of_its_own(message: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as (url, got):
        monkeypatch.setenv("APPRISE", url.replace("http://", "json://"))
        assert send(message, type="apprise", url={"env": "APPRISE"}) == Sent()
    ((_, body),) = got
    assert body["title"] == "[high] <b>Large\namount & more</b> (opened)"


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
@pytest.mark.parametrize(("wanted", "followed"), [("", False), ("?redirect=yes", True)])
def test_apprise_follows_a_redirect_only_where_its_url_says_so(
    message: Message, wanted: str, followed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving() as (elsewhere, got), receiving(307, elsewhere) as (url, _):
        monkeypatch.setenv("APPRISE", url.replace("http://", "json://") + wanted)
        result = send(message, type="apprise", url={"env": "APPRISE"})
    assert bool(got) is followed
    assert result == (Sent() if followed else Retry("the service refused it"))


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
def test_apprise_shows_where_an_alert_is_judged(judged: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as (url, got):
        monkeypatch.setenv("APPRISE", url.replace("http://", "json://"))
        assert send(judged, type="apprise", url={"env": "APPRISE"}) == Sent()
    ((_, body),) = got
    assert body["message"].endswith(f"right or wrong?\n{LINK}")
