"""Prometheus Alertmanager, where somebody has one already: each alert of a case is an alert there.

It forgets alerts that nobody repeats, so each is given an end: the time at which it counts as over.
"""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

import msgspec
from pydantic import HttpUrl

from lozenge_downstream.channels.base.channel import Message, Result
from lozenge_downstream.channels.base.http import Client, HttpChannel

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
            "labels": labels(alert),
            "annotations": {"summary": alert["title"], "description": alert["reason"]}
            | {name: alert[name] for name in ("verdict_url",) if name in alert},
            "startsAt": alert["event_time"],
            "endsAt": told["created_at"] if over else alert["resolves_at"],
        }
        for alert in told["alerts"]
    ]


def labels(alert: Mapping[str, Any]) -> dict[str, str]:
    """An alert's labels under names that Alertmanager takes; the platform's and those whose names fit anyway win."""
    given: Mapping[str, str] = alert["labels"]
    as_given_last = sorted(given, key=lambda name: name == _fitted(name))
    return {_fitted(name): given[name] for name in as_given_last} | {
        "alertname": given["detector"],
        "alert_id": alert["alert_id"],
    }


def _fitted(name: str) -> str:
    """The nearest to `name` that is [a-zA-Z_][a-zA-Z0-9_]*: Alertmanager loses the whole request for any other."""
    fitted = re.sub(r"[^a-zA-Z0-9_]", "_", name)
    return fitted if fitted and not fitted[0].isdigit() else f"_{fitted}"
