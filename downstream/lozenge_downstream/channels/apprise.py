"""Whatever else apprise knows: Telegram, Teams, Matrix, SMS ... Repeats cannot be told apart at most of these.

Wants the extra `apprise` of the platform's package.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

from lozenge_downstream.channels.base.channel import Channel as Base
from lozenge_downstream.channels.base.channel import Message, Result, Retry, Sent, with_links
from lozenge_downstream.channels.base.secrets import Secret
from lozenge_downstream.channels.base.thread_pool import Threads, threads


class Channel(Base):
    """`url` is apprise's, such as "tgram://TOKEN/CHAT": a secret. Its address is not guarded."""

    type: Literal["apprise"]
    url: Secret
    concurrency: int = 4

    @asynccontextmanager
    async def sender(self) -> "AsyncIterator[Sender]":
        """Nothing is opened before a message comes."""
        import apprise

        with threads(self.concurrency) as own:
            yield Sender(self, own, apprise)


class Sender:
    """Hands messages to apprise, which keeps how it stands with a service: it is made anew only for another URL."""

    def __init__(self, channel: Channel, threads: Threads, apprise: Any) -> None:
        self._channel, self._threads, self._apprise = channel, threads, apprise
        self._url, self._services = "", None

    async def send(self, message: Message) -> Result:
        """One attempt."""
        url = self._channel.url.resolve().get_secret_value()
        if url != self._url:
            self._url, self._services = url, self._made(url)
        if (services := self._services) is None:
            return Retry(f"{self._channel.url.place} holds no URL that apprise knows")
        told = message.fields
        title = f"[{told['severity']}] {told['title']} ({told['status']})"
        try:
            async with asyncio.timeout(self._channel.timeout):
                done = await self._threads.run(
                    lambda: services.notify(body=with_links(told["text"], told), title=title)
                )
        except TimeoutError:
            return Retry(f"no answer within {self._channel.timeout:g} s")
        return Sent() if done else Retry("the service did not take it")

    def _made(self, url: str) -> Any:
        """What sends to `url`; None if there is no such URL."""
        # in the thread that calls: apprise's own threads are all its channels' together. And where a redirect leads is
        # nobody's choice here; a URL that wants them says `?redirect=yes`
        asset = self._apprise.AppriseAsset(async_mode=False, service_timeout=0, http_redirects=False)
        services = self._apprise.Apprise(asset=asset)
        return services if services.add(url) else None
