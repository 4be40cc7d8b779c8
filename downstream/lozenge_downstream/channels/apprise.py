"""Whatever else apprise knows: Telegram, Teams, Matrix, SMS ... Repeats cannot be told apart at most of these.

Wants the extra `apprise` of the platform's package.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

from lozenge_downstream.blocking import Threads, threads
from lozenge_downstream.channels import Channel as Base
from lozenge_downstream.channels import Message, Result, Retry, Sent
from lozenge_downstream.routing.secrets import Secret


class Channel(Base):
    """`url` is apprise's, such as "tgram://TOKEN/CHAT": a secret. Addresses of it are not guarded."""

    type: Literal["apprise"]
    url: Secret
    concurrency: int = 4

    @asynccontextmanager
    async def sender(self) -> "AsyncIterator[Sender]":
        """Nothing is opened before a message comes."""
        import apprise

        # in the thread that calls: apprise's own are all its channels' together
        services = apprise.Apprise(asset=apprise.AppriseAsset(async_mode=False, service_timeout=0))
        if not services.add(self.url.resolve().get_secret_value()):
            raise ValueError("apprise does not know this kind of URL")
        with threads(self.concurrency) as own:
            yield Sender(services, self.timeout, own)


class Sender:
    """Hands messages to apprise."""

    def __init__(self, services: Any, timeout: float, threads: Threads) -> None:
        self._services, self._timeout, self._threads = services, timeout, threads

    async def send(self, message: Message) -> Result:
        """One attempt."""
        told = message.fields
        title = f"[{told['severity']}] {told['title']} ({told['status']})"
        try:
            async with asyncio.timeout(self._timeout):
                done = await self._threads.run(lambda: self._services.notify(body=told["text"], title=title))
        except TimeoutError:
            return Retry(f"no answer within {self._timeout:g} s")
        return Sent() if done else Retry("the service did not take it")
