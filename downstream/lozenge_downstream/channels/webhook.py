"""A signed HTTP request by Standard Webhooks.

Delivery is at least once: a crash between the receiver's response and its record here sends again. `webhook-id` is the
notification's id in all attempts, so a receiver can drop a repeat. During a rotation `secret` lists the new and the old
secret, and every request has both signatures.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, HttpUrl
from standardwebhooks import Webhook as Signer

from lozenge_downstream.channels.base.channel import Message, Result
from lozenge_downstream.channels.base.http import Client, HttpChannel, ReceiverUrl
from lozenge_downstream.channels.base.secrets import SigningSecret

_Secrets = Annotated[
    tuple[SigningSecret, ...],
    BeforeValidator(lambda given: given if isinstance(given, list | tuple) else [given]),
    Field(min_length=1, max_length=4),
]


class Channel(HttpChannel):
    """`url` gets a POST, signed with each `secret`."""

    type: Literal["webhook"]
    url: ReceiverUrl
    secret: _Secrets

    @asynccontextmanager
    async def sender(self) -> "AsyncIterator[Sender]":
        """Opens its connections."""
        async with self.client() as client:
            yield Sender(client, self.url, self.secret)


class Sender:
    """Signs with the current secrets, and posts."""

    def __init__(self, client: Client, url: HttpUrl, secrets: Sequence[SigningSecret]) -> None:
        self._client, self._url, self._secrets = client, url, secrets

    async def send(self, message: Message) -> Result:
        """One attempt."""
        now = datetime.now(UTC)
        signers = [Signer(secret.resolve().get_secret_value()) for secret in self._secrets]
        headers = {
            "webhook-id": message.id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": " ".join(s.sign(message.id, now, message.body) for s in signers),
        }
        return await self._client.post(self._url, message.body, headers)
