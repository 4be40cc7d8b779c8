"""HTTP requests to receivers: guarded, limited in time and size, without redirects; and the meaning of responses."""

import asyncio
import codecs
from abc import ABC
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated

import httpcore2
import httpx2
from pydantic import AfterValidator, HttpUrl, PlainValidator

from lozenge.contracts.display_text import is_blank, shortened
from lozenge_downstream.channels.base.channel import Channel, Refused, Result, Retry, Sent
from lozenge_downstream.channels.base.ssrf_guard import Guard
from lozenge_downstream.channels.base.thread_pool import threads

MAX_RESPONSE_BYTES = 64 * 1024
MAX_ANSWER = 200
"""Characters of a response in an error."""
MAX_RETRY_AFTER = 86_400.0
GONE = 410
PAGE = "the answer is a page of HTML, as of a login or an error"
_BEGIN = 4 * 1024
"""Bytes in which a document says what it is."""
_FAILURES = (
    httpcore2.NetworkError,
    httpcore2.TimeoutException,
    httpcore2.ProtocolError,
    httpcore2.UnsupportedProtocol,
)


def without_login(url: HttpUrl) -> HttpUrl:
    """The `url`; raises ValueError for one with a user or a password, since requests would go out without them."""
    if url.username or url.password:
        raise ValueError("it has a user name or a password, which would not be sent; remove them")
    return url


def _network(given: object) -> IPv4Network | IPv6Network:
    try:
        return ip_network(str(given))
    except ValueError as error:
        raise ValueError(f'{error}; a network is written as "10.1.0.0/16"') from None


ReceiverUrl = Annotated[HttpUrl, AfterValidator(without_login)]
"""The URL of a receiver in the routing file."""


class HttpChannel(Channel, ABC):
    """A channel that posts. `networks` are the private networks that it may reach, such as ["10.1.0.0/16"].

    With `accepts_html` a page of HTML with status 200 means that the receiver has taken the message.
    """

    networks: tuple[Annotated[IPv4Network | IPv6Network, PlainValidator(_network)], ...] = ()
    accepts_html: bool = False

    @asynccontextmanager
    async def client(self) -> "AsyncIterator[Client]":
        """A client for its receiver, over kept-alive connections."""
        with threads(self.concurrency) as lookups:
            client = Client(Guard(self.networks, lookups), self.timeout, accepts_html=self.accepts_html)
            try:
                yield client
            finally:
                await client.close()


class Client:
    """Posts any number of requests at once, each over a connection of its own.

    It uses no proxy and no settings of the environment. Each connection is a pool of one, because a pool of many scans
    all of them for each request.
    """

    def __init__(self, network: httpcore2.AsyncNetworkBackend, timeout: float, *, accepts_html: bool = False) -> None:
        self._network = network
        self._timeout, self._accepts_html = timeout, accepts_html
        self._trust = httpx2.create_ssl_context(trust_env=False)
        self._connections: list[httpcore2.AsyncConnectionPool] = []
        self._free: list[httpcore2.AsyncConnectionPool] = []

    async def post(
        self,
        url: HttpUrl | str,
        body: str,
        headers: Mapping[str, str],
        *,
        permanent: Collection[int] = (),
        secrets: Collection[str] = (),
        is_taken: Callable[[bytes], bool] = lambda body: True,
    ) -> Result:
        """One request within `timeout`. It raises nothing that the receiver causes; `permanent` as in `result_of`.

        The error has the beginning of the response, without the `secrets` that a receiver may repeat. A 2xx response
        for which `is_taken` does not hold is an error too. So is a page, since nobody took the message, unless a
        channel accepts pages.
        """
        sent: list[tuple[bytes | str, bytes | str]] = [
            ("content-type", "application/json"),
            ("user-agent", "lozenge-downstream"),
            *headers.items(),
        ]
        connection = self._free.pop() if self._free else self._new()
        try:
            # only a limit on the whole stops a response that trickles
            async with (
                asyncio.timeout(self._timeout),
                connection.stream("POST", str(url), headers=sent, content=body.encode()) as response,
            ):
                received = await _drain(response)
                answer = _shown(received, secrets)
                if 200 <= response.status < 300:
                    if not self._accepts_html and is_page(received):
                        return Retry(f"HTTP {response.status}: {PAGE}")
                    if not is_taken(received):
                        return Retry(f"HTTP {response.status}: {answer}")
                if 300 <= response.status < 400:
                    answer = _redirect(_header(response, b"location"), secrets)
                wait = _header(response, b"retry-after")
                return result_of(response.status, wait, datetime.now(UTC), permanent, answer)
        except TimeoutError:
            return Retry(f"no response within {self._timeout:g} s")
        except _FAILURES as error:
            return Retry(f"{type(error).__name__}: {_text_of(error)}")
        finally:
            self._free.append(connection)

    async def close(self) -> None:
        """Closes every connection."""
        for connection in self._connections:
            await connection.aclose()

    def _new(self) -> httpcore2.AsyncConnectionPool:
        connection = httpcore2.AsyncConnectionPool(self._trust, max_connections=1, network_backend=self._network)
        self._connections.append(connection)
        return connection


def _text_of(error: BaseException) -> str:
    """Why a request failed: the text of the error, or of what caused it."""
    cause: BaseException | None = error
    while cause is not None and not str(cause):
        cause = cause.__cause__ or cause.__context__
    return str(cause) if cause is not None else "the connection broke"


async def _drain(response: httpcore2.Response) -> bytes:
    """Reads the response so that the connection can be reused, up to a limit."""
    body = bytearray()
    async for chunk in response.aiter_stream():
        body += chunk
        if len(body) > MAX_RESPONSE_BYTES:
            break
    return bytes(body)


def is_page(body: bytes) -> bool:
    """Whether a response is a whole HTML document, as of a login or an error, and not the answer of a program."""
    begin = body[:_BEGIN].removeprefix(codecs.BOM_UTF8).lstrip().lower()
    return begin.startswith(b"<") and (b"<html" in begin or b"<!doctype html" in begin)


def _redirect(location: str | None, secrets: Collection[str]) -> str:
    """What to do about a redirect: a changed address, or a page to log in."""
    there = _shown((location or "").encode("latin-1"), secrets)
    return f"redirects are not followed; the receiver is at {there}" if there else "redirects are not followed"


def _shown(body: bytes, secrets: Collection[str]) -> str:
    """The beginning of a response in one line, for a person; "" of a page."""
    text = " ".join(body.decode("utf-8", "replace").split())
    for secret in secrets:
        text = text.replace(secret, "***")
    return "" if is_blank(text) or text.startswith("<") else shortened(text, MAX_ANSWER)


def _header(response: httpcore2.Response, name: bytes) -> str | None:
    return next((value.decode("latin-1") for key, value in response.headers if key.lower() == name), None)


def result_of(
    status: int, retry_after: str | None, now: datetime, permanent: Collection[int] = (), answer: str = ""
) -> Result:
    """Only 2xx is success, a redirect is not followed, and 410 disables the channel.

    With a status among `permanent` the receiver refuses this message until a person acts, unless it says when to retry.
    """
    if 200 <= status < 300:
        return Sent()
    if status == GONE:
        return Refused(f"HTTP {status}: the receiver refuses all messages", disable=True)
    error = f"HTTP {status}: {answer}" if answer else f"HTTP {status}"
    wait = _seconds(retry_after, now)
    return Refused(error) if status in permanent and wait is None else Retry(error, wait)


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
    except (TypeError, ValueError, OverflowError):
        return None
    return min(max(wait, 0.0), MAX_RETRY_AFTER)
