"""One signed HTTP request of the Standard Webhooks kind, and what its answer means.

`webhook-id` is the notification id over all attempts, so a receiver can drop a repeat: delivery is at
least once, because a crash between the receiver's 200 and our note of it sends again.
"""

import asyncio
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx2
from standardwebhooks import Webhook as Signer

from lozenge_downstream.config import Webhook

MAX_ANSWER_BYTES = 64 * 1024
MAX_RETRY_AFTER = 86_400.0
RETRY_FACTOR = 4.0
JITTER = 0.2


@dataclass(frozen=True, slots=True)
class Sent:
    """The receiver answered 2xx."""


@dataclass(frozen=True, slots=True)
class Retry:
    """It did not; `after` is the wait in seconds that it asked for, if any."""

    error: str
    after: float | None = None


class Sender:
    """Sends to one webhook over kept-alive connections; use as an async context manager."""

    def __init__(self, webhook: Webhook) -> None:
        self._url = str(webhook.url)
        self._timeout = webhook.timeout
        self._signer = Signer(webhook.secret.resolve().get_secret_value())
        self._client = httpx2.AsyncClient(
            timeout=webhook.timeout,
            follow_redirects=False,
            # No proxy and no .netrc from the environment: where a secret-bearing request goes is in the file.
            trust_env=False,
            limits=httpx2.Limits(max_connections=webhook.concurrency, max_keepalive_connections=webhook.concurrency),
        )

    async def __aenter__(self) -> "Sender":
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.__aexit__()

    async def send(self, id: str, body: str) -> Sent | Retry:
        """One attempt, at most the webhook's timeout long; never raises for what the receiver does."""
        now = datetime.now(UTC)
        headers = {
            "content-type": "application/json",
            "user-agent": "lozenge-downstream",
            "webhook-id": id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": self._signer.sign(id, now, body),
        }
        try:
            # httpx2 limits each read; only a limit on the whole stops an answer that drips.
            async with asyncio.timeout(self._timeout):
                async with self._client.stream("POST", self._url, content=body.encode(), headers=headers) as response:
                    await _drain(response)
                    return judge(response.status_code, response.headers.get("retry-after"), now)
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


def judge(status: int, retry_after: str | None, now: datetime) -> Sent | Retry:
    """Only 2xx is success; a redirect is not followed."""
    if 200 <= status < 300:
        return Sent()
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


def wait_seconds(webhook: Webhook, attempts: int, asked: float | None, chance: float) -> float:
    """How long to wait after the failed attempt number `attempts` (from 1); `chance` in 0..1 spreads the load."""
    backoff = min(webhook.first_retry * math.pow(RETRY_FACTOR, attempts - 1), webhook.max_retry)
    return max(backoff * (1 + JITTER * (2 * chance - 1)), asked or 0.0)
