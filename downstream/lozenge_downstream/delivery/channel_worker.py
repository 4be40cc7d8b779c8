"""The worker of one channel: it prefetches messages, sends them concurrently, and records results in batches.

The store schedules retries, also over restarts. A message is known here from the fetch until its result is recorded,
so none is fetched twice. A receiver that sends `Retry-After` gets no message until that time. This is not in the
store, so a new worker makes one more request.
"""

import asyncio
import contextlib
import math
import random
import time
from collections.abc import Callable

import msgspec

from lozenge.contracts.display_text import readable
from lozenge_downstream.channels.base.channel import Channel, Message, Refused, Result, Retry, Sender, Sent
from lozenge_downstream.channels.base.secrets import SecretUnusable
from lozenge_downstream.delivery.stored_deliveries import StoredDeliveries
from lozenge_downstream.store.deliveries import Attempt, Delivery
from lozenge_downstream.store.tables import DUE, FAILED, SENT

POLL_SECONDS = 0.25
BATCH_SECONDS = 0.02
"""How long a result waits for others, to be recorded with them."""
PREFETCH = 4
"""A fetch takes this many times the channel's `concurrency`, so that senders never wait for a recording."""
RETRY_FACTOR = 4.0
JITTER = 0.2


class ChannelWorker:
    """Sends to one channel while `may`. It belongs to one event loop; that loop's threads use the `deliveries`."""

    def __init__(self, channel: Channel, deliveries: StoredDeliveries, may: Callable[[], bool]) -> None:
        self._channel, self._deliveries, self._may = channel, deliveries, may
        self._known: set[str] = set()
        self._waiting: asyncio.Queue[Delivery] = asyncio.Queue()
        self._results: list[Attempt] = []
        self._wakeup = asyncio.Event()
        self._may_have_more, self._is_disabled = True, False
        self._fetch_at, self._record_at = 0.0, math.inf
        self._blocked_until = 0.0

    def wake(self) -> None:
        """Signals that the store may have new deliveries."""
        self._may_have_more = True
        self._wakeup.set()

    async def run(self) -> None:
        """Sends until it is cancelled: messages in flight are cut and stay due. Raises the errors of the store."""
        try:
            async with self._channel.sender() as sender, asyncio.TaskGroup() as tasks:
                for _ in range(self._channel.concurrency):
                    tasks.create_task(self._send(sender))
                tasks.create_task(self._fetch_and_record())
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        finally:
            if self._results:
                self._deliveries.record(self._results)

    async def postpone(self, error: str) -> None:
        """Records a failed attempt of each due message, since the channel cannot be opened.

        So they have an error, and an alarm names the channel. Raises the errors of the store.
        """
        if self._may():
            due = await asyncio.to_thread(self._deliveries.due, PREFETCH * self._channel.concurrency)
            if attempts := [_attempt(Retry(error), self._channel, delivery) for delivery in due]:
                await asyncio.to_thread(self._deliveries.record, attempts)

    async def _send(self, sender: Sender) -> None:
        while True:
            delivery = await self._waiting.get()
            if self._may_have_more and self._needs_more():
                self._wakeup.set()
            if not self._is_open():
                self._known.discard(delivery.notification_id)
                continue
            result = await _send_one(sender, delivery)
            if isinstance(result, Retry) and result.after is not None:
                self._blocked_until = max(self._blocked_until, time.monotonic() + result.after)
            attempt = _attempt(result, self._channel, delivery)
            self._is_disabled |= attempt.disable
            self._results.append(attempt)
            if len(self._results) == 1:
                self._record_at = time.monotonic() + BATCH_SECONDS
                self._wakeup.set()

    async def _fetch_and_record(self) -> None:
        """Fetches and records in turn, so that no message is fetched whose result is being recorded."""
        while True:
            wait = min(self._fetch_at, self._record_at) - time.monotonic()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, wait)):  # Python 3.11's wait_for may swallow a cancellation
                    await self._wakeup.wait()
            self._wakeup.clear()
            if time.monotonic() >= self._fetch_at:  # a retry may be due
                self._may_have_more, self._fetch_at = True, time.monotonic() + POLL_SECONDS
            if self._may_have_more and self._needs_more() and self._is_open():
                await self._fetch()
            if time.monotonic() >= self._record_at:
                await self._record()

    async def _fetch(self) -> None:
        limit = PREFETCH * self._channel.concurrency + len(self._known)  # known messages are still due in the store
        self._may_have_more = False  # before the query: it may miss what is added meanwhile
        due = await asyncio.to_thread(self._deliveries.due, limit)
        self._may_have_more |= len(due) == limit
        for delivery in due:
            if delivery.notification_id not in self._known:
                self._known.add(delivery.notification_id)
                self._waiting.put_nowait(delivery)

    async def _record(self) -> None:
        attempts, self._results, self._record_at = self._results, [], math.inf
        writing = asyncio.create_task(asyncio.to_thread(self._deliveries.record, attempts))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            await writing  # else the next worker would send it again
            raise
        self._known.difference_update(attempt.delivery.notification_id for attempt in attempts)
        self.wake()  # later messages of their cases may be due now
        if self._is_disabled and not self._results:  # from here on the store says whether the channel is disabled
            while not self._waiting.empty():
                self._known.discard(self._waiting.get_nowait().notification_id)
            self._is_disabled = False

    def _is_open(self) -> bool:
        return not self._is_disabled and time.monotonic() >= self._blocked_until and self._may()

    def _needs_more(self) -> bool:
        return self._waiting.qsize() <= PREFETCH * self._channel.concurrency // 2


def _attempt(result: Result, channel: Channel, delivery: Delivery) -> Attempt:
    now = time.time()
    if isinstance(result, Sent):
        return Attempt(delivery, SENT, now)
    error = readable(result.error)  # it quotes the receiver, and PostgreSQL stores no text with a NUL
    match result:
        case Refused(_, True):
            return Attempt(delivery, DUE, now, error, disable=True)
        case Refused():
            return Attempt(delivery, FAILED, now, error)
        case Retry() if delivery.attempts + 1 >= channel.attempts:
            return Attempt(delivery, FAILED, now, error)
        case Retry(_, after):
            wait = wait_seconds(channel, delivery.attempts + 1, after, random.random())
            return Attempt(delivery, DUE, now + wait, error)


async def _send_one(sender: Sender, delivery: Delivery) -> Result:
    message = Message(delivery.notification_id, delivery.body, msgspec.json.decode(delivery.body)["data"])
    try:
        return await sender.send(message)
    except SecretUnusable as fault:
        return Retry(str(fault))
    except Exception as fault:  # of the channel; its text may contain a secret
        return Retry(f"the channel failed: {type(fault).__name__}")


def wait_seconds(channel: Channel, attempts: int, retry_after: float | None, chance: float) -> float:
    """The wait after failed attempt number `attempts` (from 1); `chance` in 0..1 is the jitter."""
    backoff = min(channel.first_retry * math.pow(RETRY_FACTOR, attempts - 1), channel.max_retry)
    return max(backoff * (1 + JITTER * (2 * chance - 1)), retry_after or 0.0)
