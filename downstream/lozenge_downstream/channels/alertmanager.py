"""Prometheus Alertmanager, where somebody has one already: each alert of a case is an alert there.

It forgets alerts that nobody repeats, so each is given an end: the time at which it counts as over.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import msgspec
from pydantic import HttpUrl

from lozenge_downstream.channels import Message, Result
from lozenge_downstream.http import Client, HttpChannel

PATH = "api/v2/alerts"
HOPELESS = frozenset({400})


class Channel(HttpChannel):
    """`url` is its root, such as "http://alertmanager:9093/"."""

    type: Literal["alertmanager"]
    url: HttpUrl

    @asynccontextmanager
    async def sender(self) -> "AsyncIterator[Sender]":
        """Opens its connections."""
        async with self.client() as client:
            yield Sender(client, f"{str(self.url).rstrip('/')}/{PATH}")


class Sender:
    """Renders and posts."""

    def __init__(self, client: Client, url: str) -> None:
        self._client, self._url = client, url

    async def send(self, message: Message) -> Result:
        """One attempt."""
        body = msgspec.json.encode(alerts(message.fields)).decode()
        return await self._client.post(self._url, body, {}, hopeless=HOPELESS)


def alerts(told: Any) -> list[dict[str, Any]]:
    """The alerts that a notification tells, as Alertmanager takes them: labels are their identity."""
    over = told["status"] == "resolved"
    return [
        {
            "labels": {"alertname": alert["labels"]["detector"], "alert_id": alert["alert_id"], **alert["labels"]},
            "annotations": {"summary": alert["title"], "description": alert["reason"]}
            | {name: alert[name] for name in ("verdict_url",) if name in alert},
            "startsAt": alert["event_time"],
            "endsAt": told["created_at"] if over else alert["resolves_at"],
        }
        for alert in told["alerts"]
    ]
