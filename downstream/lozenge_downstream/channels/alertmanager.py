"""Prometheus Alertmanager: each alert of a case is an alert there.

Alertmanager resolves alerts that are not repeated, so each has an end: the time at which it resolves here.
"""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Literal

import msgspec

from lozenge_downstream.channels.base.channel import Message, Result
from lozenge_downstream.channels.base.http import Client, HttpChannel, ReceiverUrl

PATH = "api/v2/alerts"
PERMANENT = frozenset({400, 413})


class Channel(HttpChannel):
    """`url` is the root of Alertmanager, such as "http://alertmanager:9093/", or that of its alerts below it."""

    type: Literal["alertmanager"]
    url: ReceiverUrl

    @asynccontextmanager
    async def sender(self) -> "AsyncIterator[Sender]":
        """Opens its connections."""
        async with self.client() as client:
            yield Sender(client, f"{str(self.url).rstrip('/').removesuffix(f'/{PATH}')}/{PATH}")


class Sender:
    """Renders and posts."""

    def __init__(self, client: Client, url: str) -> None:
        self._client, self._url = client, url

    async def send(self, message: Message) -> Result:
        """One attempt."""
        body = msgspec.json.encode(alerts(message.fields)).decode()
        return await self._client.post(self._url, body, {}, permanent=PERMANENT)


def alerts(fields: Any) -> list[dict[str, Any]]:
    """The alerts of a notification in Alertmanager's form: labels are their identity.

    Alertmanager refuses an alert that ends before it starts, so one whose event lies in the future starts at its end.
    """
    resolved = fields["status"] == "resolved"
    return [
        {
            "labels": labels(alert),
            "annotations": {"summary": alert["title"], "description": alert["reason"]}
            | {name: alert[name] for name in ("feedback_url",) if name in alert},
            "startsAt": min(alert["event_time"], end, key=datetime.fromisoformat),
            "endsAt": end,
        }
        for alert in fields["alerts"]
        for end in (fields["created_at"] if resolved else alert["resolves_at"],)
    ]


def labels(alert: Mapping[str, Any]) -> dict[str, str]:
    """An alert's labels under valid names; the platform's labels and those with valid names take precedence."""
    given: Mapping[str, str] = alert["labels"]
    as_given_last = sorted(given, key=lambda name: name == _valid(name))
    return {_valid(name): given[name] for name in as_given_last} | {
        "alertname": given["detector"],
        "alert_id": alert["alert_id"],
    }


def _valid(name: str) -> str:
    """`name` as [a-zA-Z_][a-zA-Z0-9_]*: Alertmanager answers 400 to the whole request for one other name."""
    valid = re.sub(r"[^a-zA-Z0-9_]", "_", name)
    return valid if valid and not valid[0].isdigit() else f"_{valid}"
