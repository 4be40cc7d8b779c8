"""PagerDuty Events API v2: a case is one incident, with its id as `dedup_key`, so a repeat changes nothing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import msgspec
from pydantic import HttpUrl

from lozenge.contracts.display_text import shortened
from lozenge_downstream.channels.base.channel import Message, Result, links
from lozenge_downstream.channels.base.http import Client, HttpChannel, ReceiverUrl
from lozenge_downstream.channels.base.secrets import Secret

SEVERITIES = {"info": "info", "low": "info", "medium": "warning", "high": "error", "critical": "critical"}
PERMANENT = frozenset({400, 413})
MAX_SUMMARY = 1024


class Channel(HttpChannel):
    """`key` is the integration's routing key."""

    type: Literal["pagerduty"]
    key: Secret
    url: ReceiverUrl = HttpUrl("https://events.pagerduty.com/v2/enqueue")

    @asynccontextmanager
    async def sender(self) -> "AsyncIterator[Sender]":
        """Opens its connections."""
        async with self.client() as client:
            yield Sender(client, self.url, self.key)


class Sender:
    """Renders and posts."""

    def __init__(self, client: Client, url: HttpUrl, key: Secret) -> None:
        self._client, self._url, self._key = client, url, key

    async def send(self, message: Message) -> Result:
        """One attempt."""
        key = self._key.resolve().get_secret_value()
        body = msgspec.json.encode(event(message.fields, key)).decode()
        return await self._client.post(self._url, body, {}, permanent=PERMANENT, secrets=(key,))


def event(fields: Any, key: str) -> dict[str, Any]:
    """The event for a notification."""
    action = "resolve" if fields["status"] == "resolved" else "trigger"
    shown = ("text", "subject", "detectors", "score", "alert_ids", "notification_id", "seq")
    return {
        "routing_key": key,
        "event_action": action,
        "dedup_key": fields["case_id"],
        "payload": {
            "summary": shortened(fields["title"], MAX_SUMMARY),
            "source": fields["subject"],
            "severity": SEVERITIES.get(fields["severity"], "critical"),
            "timestamp": fields["event_time"],
            "custom_details": {name: fields[name] for name in shown},
        },
        "links": [{"href": url, "text": title} for title, url in links(fields)],
    }
