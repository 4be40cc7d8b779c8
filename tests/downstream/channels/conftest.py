"""Messages, and receivers of them on loopback."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from aiosmtpd.controller import Controller

from lozenge_deploy.local.ports import free_port
from lozenge_downstream.channels.base.channel import Message, Result
from lozenge_downstream.model import ReceivedRecord
from lozenge_downstream.routing.config import Routing
from tests.downstream.conftest import Desk
from tests.http_server import QuietHandler, serving

MakeRecord = Callable[..., ReceivedRecord]
LINK = "https://lozenge.example.com/feedback/a.b-c?d=1&e=2"


@pytest.fixture
def message(desk: Desk, record: MakeRecord) -> Message:
    """What a channel is given for one alert with an awkward title."""
    desk.routing(route={"group_by": ["entity"]})
    desk.take(record(title="<b>Large\namount & more</b>"))
    (notification,) = desk.notifications()
    return Message(notification["notification_id"], json.dumps({"data": notification}), notification)


@pytest.fixture
def message_with_links(message: Message) -> Message:
    """The same with a link to the feedback page, and a further alert whose link is too long."""
    (alert,) = message.fields["alerts"]
    alerts = [alert | {"feedback_url": LINK}, alert | {"feedback_url": LINK + "x" * 1_000}]
    fields = {**message.fields, "alerts": alerts}
    return Message(message.id, json.dumps({"data": fields}), fields)


def send(message: Message, **channel: Any) -> Result:
    made = Routing.model_validate({"channels": {"c": channel}}).channels["c"]

    async def once() -> Result:
        async with made.sender() as sender:
            return await sender.send(message)

    return asyncio.run(once())


@contextmanager
def receiving(status: int = 200, location: str | None = None, answer: bytes = b"") -> Iterator[tuple[str, list[Any]]]:
    """A receiver of JSON that answers `status`, where else to go, and the text `answer`."""
    got: list[Any] = []

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            got.append((self.path, json.loads(self.rfile.read(int(self.headers["content-length"])))))
            self.send_response(status)
            self.send_header("content-length", str(len(answer)))
            if location:
                self.send_header("location", location)
            self.end_headers()
            self.wfile.write(answer)

    with serving(Handler) as url:
        yield url, got


@contextmanager
def mail_server(
    answer: str = "250 OK", recipient: str = "250 OK", *, login: bool = False
) -> Iterator[tuple[int, list[bytes]]]:
    """The port of a mail server, which answers so to each recipient and mail, and the mails that it was sent.

    With `login` it offers one, also without encryption.
    """
    mails: list[bytes] = []

    class Handler:
        async def handle_RCPT(self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any) -> str:
            if recipient.startswith("2"):
                envelope.rcpt_tos.append(address)
            return recipient

        async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
            mails.append(envelope.content)
            return answer

    port = free_port(0)
    controller = Controller(Handler(), hostname="127.0.0.1", port=port, auth_require_tls=not login)
    controller.start()
    try:
        yield port, mails
    finally:
        controller.stop()
