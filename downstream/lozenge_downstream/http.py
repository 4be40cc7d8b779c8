"""HTTP requests to receivers: guarded, bounded in time and size, without redirects; and what answers mean."""

import asyncio
from abc import ABC
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import IPv4Network, IPv6Network
from typing import Annotated

import httpx2
from pydantic import Field, HttpUrl

from lozenge_downstream.channels import Channel, Drop, Result, Retry, Sent
from lozenge_downstream.guard import Transport

MAX_ANSWER_BYTES = 64 * 1024
MAX_RETRY_AFTER = 86_400.0
GONE = 410


class HttpChannel(Channel, ABC):
    """A channel that posts; `networks` are the private ones that it may reach, such as ["10.1.0.0/16"]."""

    networks: Annotated[tuple[IPv4Network | IPv6Network, ...], Field()] = ()

    @asynccontextmanager
    async def client(self) -> "AsyncIterator[Client]":
        """A client for its receiver, over kept-alive connections."""
        transport = Transport(self.networks, self.concurrency)
        async with httpx2.AsyncClient(
            transport=transport, timeout=self.timeout, follow_redirects=False, trust_env=False
        ) as client:
            yield Client(client, self.timeout)


class Client:
    """Posts and judges the answer."""

    def __init__(self, client: httpx2.AsyncClient, timeout: float) -> None:
        self._client = client
        self._timeout = timeout

    async def post(
        self, url: HttpUrl | str, body: str, headers: Mapping[str, str], *, hopeless: Collection[int] = ()
    ) -> Result:
        """One request, `timeout` long at most; never raises for what the receiver does. `hopeless` as in `judge`."""
        sent = {"content-type": "application/json", "user-agent": "lozenge-downstream", **headers}
        try:
            # httpx2 limits each read; only a limit on the whole stops an answer that drips.
            async with (
                asyncio.timeout(self._timeout),
                self._client.stream("POST", str(url), content=body.encode(), headers=sent) as response,
            ):
                await _drain(response)
                retry_after = response.headers.get("retry-after")
                return judge(response.status_code, retry_after, datetime.now(UTC), hopeless)
        except TimeoutError:
            return Retry(f"no answer within {self._timeout:g} s")
        except httpx2.HTTPError as error:
            return Retry(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


async def _drain(response: httpx2.Response) -> None:
    """Reads the answer so that the connection can be used again, but no more than a sane one holds."""
    size = 0
    async for chunk in response.aiter_raw():
        size += len(chunk)
        if size > MAX_ANSWER_BYTES:
            return


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
