"""The notifier's API, served on loopback, and a client that has its token."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from lozenge.contracts.avro import Codec
from lozenge.contracts.topics import Topics
from lozenge_downstream.api import api
from lozenge_downstream.api.feedback_records import FeedbackLinks
from lozenge_downstream.api.server import ApiServer
from lozenge_downstream.model import ReceivedRecord
from tests.downstream.conftest import SECRET, Desk

TOPICS = Topics()
TOKEN = "a token"
LINKS = FeedbackLinks("a secret of sixteen", "https://lozenge.example.com/")


class Client:
    """Asks the served API, as somebody who has the token."""

    def __init__(self, port: int) -> None:
        self.woken = 0
        self._url = f"http://127.0.0.1:{port}"

    def ask(self, method: str, path: str, body: Any = None, token: str = TOKEN) -> tuple[int, Any]:
        answer = httpx2.request(method, self._url + path, json=body, headers={"authorization": f"Bearer {token}"})
        return answer.status_code, answer.json()

    def post(self, path: str, body: bytes, headers: dict[str, str]) -> httpx2.Response:
        return httpx2.post(self._url + path, content=body, headers=headers)

    def send(self, path: str, body: bytes, headers: dict[str, str]) -> int:
        return self.post(path, body, headers).status_code

    def open(self, method: str, path: str, data: Any = None) -> tuple[int, str]:
        answer = httpx2.request(method, self._url + path, data=data)
        return answer.status_code, answer.text


@pytest.fixture
def client(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setenv("HOOK", SECRET)
    hook = {"type": "webhook", "url": "http://h/", "secret": {"env": "HOOK"}}
    desk.routing(channels={"ops": hook, "chat": hook}, route={"channels": ["ops"]})
    with ApiServer(api(desk.store, desk.pipeline, lambda: None, TOKEN, LINKS), "127.0.0.1:0") as serving:
        yield Client(serving.port)


def feedback(desk: Desk) -> list[dict[str, Any]]:
    """What goes to Kafka of feedback, oldest first."""
    with desk.store.reading() as t:
        return [Codec.of("feedback").decode(o.value) for o in t.outbox.pending(10) if o.topic == TOPICS.feedback]


def alert_id(desk: Desk, record: ReceivedRecord) -> str:
    (received,) = desk.take(record)
    assert received.alert is not None
    return received.alert.id
