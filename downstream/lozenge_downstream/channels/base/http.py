"""HTTP requests to receivers: guarded, bounded in time and size, without redirects; and what answers mean."""

import asyncio
from abc import ABC
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import IPv4Network, IPv6Network
from typing import Annotated

import httpcore2
import httpx2
from pydantic import Field, HttpUrl

from lozenge_downstream.channels.base.channel import Channel, Drop, Result, Retry, Sent
from lozenge_downstream.channels.base.ssrf_guard import Guard
from lozenge_downstream.channels.base.thread_pool import threads

MAX_ANSWER_BYTES = 64 * 1024
MAX_RETRY_AFTER = 86_400.0
GONE = 410
_FAILURES = (
    httpcore2.NetworkError,
    httpcore2.TimeoutException,
    httpcore2.ProtocolError,
    httpcore2.UnsupportedProtocol,
)


class HttpChannel(Channel, ABC):
    """A channel that posts; `networks` are the private ones that it may reach, such as ["10.1.0.0/16"]."""

    networks: Annotated[tuple[IPv4Network | IPv6Network, ...], Field()] = ()

    @asynccontextmanager
    async def client(self) -> "AsyncIterator[Client]":
        """A client for its receiver, over kept-alive connections."""
        with threads(self.concurrency) as lookups:
            client = Client(Guard(self.networks, lookups), self.timeout)
            try:
                yield client
            finally:
                await client.close()


class Client:
    """Posts and judges the answer; as many at once as its user likes, each over a connection of its own.

    It has no proxy and takes nothing from the environment. Each connection is a pool of one: a pool of many looks at
    all of them for each request.
    """

    def __init__(self, network: httpcore2.AsyncNetworkBackend, timeout: float) -> None:
        self._network = network
        self._timeout = timeout
        self._trust = httpx2.create_ssl_context(trust_env=False)
        self._connections: list[httpcore2.AsyncConnectionPool] = []
        self._free: list[httpcore2.AsyncConnectionPool] = []

    async def post(
        self, url: HttpUrl | str, body: str, headers: Mapping[str, str], *, hopeless: Collection[int] = ()
    ) -> Result:
        """One request, `timeout` long at most; never raises for what the receiver does. `hopeless` as in `judge`."""
        sent: list[tuple[bytes | str, bytes | str]] = [
            ("content-type", "application/json"),
            ("user-agent", "lozenge-downstream"),
            *headers.items(),
        ]
        connection = self._free.pop() if self._free else self._new()
        try:
            # only a limit on the whole stops an answer that drips
            async with (
                asyncio.timeout(self._timeout),
                connection.stream("POST", str(url), headers=sent, content=body.encode()) as response,
            ):
                await _drain(response)
                return judge(response.status, _header(response, b"retry-after"), datetime.now(UTC), hopeless)
        except TimeoutError:
            return Retry(f"no answer within {self._timeout:g} s")
        except _FAILURES as error:
            return Retry(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
        finally:
            self._free.append(connection)

    async def close(self) -> None:
        """Closes every connection."""
        for connection in self._connections:
            await connection.aclose()

    def _new(self) -> httpcore2.AsyncConnectionPool:
        made = httpcore2.AsyncConnectionPool(self._trust, max_connections=1, network_backend=self._network)
        self._connections.append(made)
        return made


async def _drain(response: httpcore2.Response) -> None:
    """Reads the answer so that the connection can be used again, but no more than a sane one holds."""
    size = 0
    async for chunk in response.aiter_stream():
        size += len(chunk)
        if size > MAX_ANSWER_BYTES:
            return


def _header(response: httpcore2.Response, name: bytes) -> str | None:
    return next((value.decode("latin-1") for key, value in response.headers if key.lower() == name), None)


def judge(status: int, retry_after: str | None, now: datetime, hopeless: Collection[int] = ()) -> Result:
    """Only 2xx is success, a redirect is not followed, and 410 turns the channel off.

    Statuses among `hopeless` are the receiver's way to say that this very message will never do.
    """
    if 200 <= status < 300:
        return Sent()
    if status == GONE:
        return Drop(f"HTTP {status}: the receiver wants nothing more", disable=True)
    if status in hopeless:
        return Drop(f"HTTP {status}")
    return Retry(f"HTTP {status}", _seconds(retry_after, now))


def _seconds(retry_after: str | None, now: datetime) -> float | None:
    """`Retry-After` as seconds or as an HTTP date; None if absent or unreadable."""
    if retry_after is None:
        return None
    try:
        wait = (
            float(retry_after)
            if retry_after.strip().isdigit()
            else (parsedate_to_datetime(retry_after) - now).total_seconds()
        )
    except (TypeError, ValueError):
        return None
    return min(max(wait, 0.0), MAX_RETRY_AFTER)
