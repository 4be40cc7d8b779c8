"""Messages, and receivers of them on loopback."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

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
def receiving(status: int = 200, location: str | None = None) -> Iterator[tuple[str, list[Any]]]:
    """A receiver of JSON that answers `status`, and where else to go."""
    got: list[Any] = []

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            got.append((self.path, json.loads(self.rfile.read(int(self.headers["content-length"])))))
            self.send_response(status)
            self.send_header("content-length", "0")
            if location:
                self.send_header("location", location)
            self.end_headers()

    with serving(Handler) as url:
        yield url, got
