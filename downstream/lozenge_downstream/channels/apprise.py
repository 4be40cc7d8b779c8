"""The services of apprise: Telegram, Teams, Matrix, SMS ... Most of them show a repeat twice.

It needs the extra `apprise` of the platform's package.
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
    """`url` is a URL of apprise, such as "tgram://TOKEN/CHAT", and a secret. Its host is not restricted."""

    type: Literal["apprise"]
    url: Secret
    concurrency: int = 4

    @asynccontextmanager
    async def sender(self) -> "AsyncIterator[Sender]":
        """Opens nothing: each message does."""
        import apprise

        with threads(self.concurrency) as own:
            yield Sender(self, own, apprise)


class Sender:
    """Sends by apprise, which keeps the state of a service: its object is replaced only if the URL changes."""

    def __init__(self, channel: Channel, threads: Threads, apprise: Any) -> None:
        self._channel, self._threads, self._apprise = channel, threads, apprise
        self._url, self._services = "", None

    async def send(self, message: Message) -> Result:
        """One attempt."""
        url = self._channel.url.resolve().get_secret_value()
        if url != self._url:
            self._url, self._services = url, self._services_of(url)
        if (services := self._services) is None:
            return Retry(f"{self._channel.url.location} contains no URL that apprise supports")
        fields = message.fields
        title = f"[{fields['severity']}] {fields['title']} ({fields['status']})"
        try:
            async with asyncio.timeout(self._channel.timeout):
                done = await self._threads.run(
                    # as text: a service that takes HTML or Markdown would read markup out of a name
                    lambda: services.notify(with_links(fields["text"], fields), title, body_format="text")
                )
        except TimeoutError:
            return Retry(f"no response within {self._channel.timeout:g} s")
        return Sent() if done else Retry("the service refused it")

    def _services_of(self, url: str) -> Any:
        """The apprise object for `url`; None if apprise does not support it."""
        # in the calling thread: all channels would share apprise's own threads. Redirects are off, because nothing here
        # restricts their target; a URL with `?redirect=yes` allows them
        asset = self._apprise.AppriseAsset(async_mode=False, service_timeout=0, http_redirects=False)
        services = self._apprise.Apprise(asset=asset)
        if not services.add(url):
            return None
        for service in services:  # a service refuses what is longer than it takes, unless apprise cuts it
            if "overflow=" not in url.lower():
                service.overflow_mode = self._apprise.OverflowMode.TRUNCATE
        return services
