"""A Slack-style incoming webhook: Slack, Mattermost, Rocket.Chat. A repeat is shown twice."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from lozenge.contracts.display_text import shortened
from lozenge_downstream.channels.base.channel import Message, Result, links
from lozenge_downstream.channels.base.http import Client, HttpChannel
from lozenge_downstream.channels.base.secrets import SecretUrl

COLOURS = {"info": "#7a8b99", "low": "#2f81b7", "medium": "#d9a400", "high": "#e0701b", "critical": "#c9252d"}
PERMANENT = frozenset({400, 413})
MAX_TITLE, MAX_TEXT = 1_000, 2_900
"""Characters as sent, escaped. Slack takes 40,000 and recommends 4,000 at most; its clients fold longer ones."""

_ERROR_WORD = re.compile(rb"[a-z]+(_[a-z]+)+")


class Channel(HttpChannel):
    """`url` is a secret, because it authorises to post. `channel` overrides the webhook's own, where allowed."""

    type: Literal["slack"]
    url: SecretUrl
    channel: str | None = None

    @asynccontextmanager
    async def sender(self) -> "AsyncIterator[Sender]":
        """Opens its connections."""
        async with self.client() as client:
            yield Sender(client, self.url, self.channel)


class Sender:
    """Renders and posts."""

    def __init__(self, client: Client, url: SecretUrl, channel: str | None) -> None:
        self._client, self._url, self._channel = client, url, channel

    async def send(self, message: Message) -> Result:
        """One attempt."""
        body = payload(message.fields) | ({"channel": self._channel} if self._channel else {})
        url = self._url.resolve().get_secret_value()
        text = msgspec.json.encode(body).decode()
        secrets = (url, urlsplit(url).path[1:] or url)
        return await self._client.post(url, text, {}, permanent=PERMANENT, secrets=secrets, is_taken=is_taken)


def is_taken(answer: bytes) -> bool:
    """Whether a 2xx answer says that the message was taken.

    Slack and its relatives also answer 200 to what they refuse: with an error such as "no_service", or with JSON whose
    `ok` or `success` is false.
    """
    try:
        found = msgspec.json.decode(answer)
    except (ValueError, RecursionError):
        return _ERROR_WORD.fullmatch(answer.strip()) is None
    return not isinstance(found, dict) or (found.get("ok") is not False and found.get("success") is not False)


def payload(fields: Any) -> dict[str, Any]:
    """The message in Slack's form; `&`, `<` and `>` are escaped, since they are its markup."""
    return {
        "text": f"{_fitting(fields['title'], MAX_TITLE)} ({fields['status']})",
        "attachments": [
            {
                "color": COLOURS.get(fields["severity"], COLOURS["critical"]),
                "text": _fitting(fields["text"], MAX_TEXT),
                "fields": [
                    {"title": title, "value": _escaped(str(value)), "short": True}
                    for title, value in (
                        ("Severity", fields["severity"]),
                        ("About", fields["subject"]),
                        ("Case", fields["case_id"]),
                    )
                ],
            },
            *(
                {"fallback": title, "text": f"<{_escaped(url)}|{_escaped(title)}>, right or wrong?"}
                for title, url in links(fields)
            ),
        ],
    }


def _fitting(text: str, most: int) -> str:
    """As much of `text` as fits escaped, so that no escape is divided."""
    return _escaped(shortened(text, most, lambda part: len(_escaped(part))))


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
