"""One channel's messages: fetched from the store ahead, sent side by side, their results noted together.

What fails comes back when its time has come, also after a restart: retries are left to the store. A message is known
here from the moment it is fetched until its result is noted, so that none is fetched twice. A receiver that asks for a
wait gets nothing more until that is over; this is not in the store, so a lane that starts anew asks it once more.
"""

import asyncio
import contextlib
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from lozenge.contracts.topics import Topics
from lozenge.errors import Poison
from lozenge.metrics.app_metrics import Metrics
from lozenge.process.logging import logger
from lozenge_downstream.channels.base.channel import Channel, Drop, Message, Result, Retry, Sender, Sent
from lozenge_downstream.channels.base.secrets import SecretUnusable
from lozenge_downstream.dead_letter_encoder import dead_letter
from lozenge_downstream.model import Record
from lozenge_downstream.store import Store
from lozenge_downstream.store.deliveries import Attempt, Delivery
from lozenge_downstream.store.tables import DUE, FAILED, SENT

LOOK_SECONDS = 0.25
GATHER_SECONDS = 0.02
"""So long the end of a message waits for others to be noted with it."""
AHEAD = 4
"""How many times a channel's `concurrency` is fetched at once."""
RETRY_FACTOR = 4.0
JITTER = 0.2


class Undeliverable(Poison):
    """A channel refused a message for good, or as often as its configuration allows."""


class ChannelWorker:
    """Sends to one channel while `may`; used in one event loop, but for `store`, which that loop's threads use."""

    def __init__(
        self, name: str, channel: Channel, store: Store, topics: Topics, may: Callable[[], bool], metrics: Metrics
    ) -> None:
        self._name, self._channel, self._store, self._topics = name, channel, store, topics
        self._may, self._metrics = may, metrics
        metrics.deliveries(name)
        self._known: set[str] = set()
        self._waiting: asyncio.Queue[Delivery] = asyncio.Queue()
        self._ended: list[Attempt] = []
        self._stir = asyncio.Event()
        self._is_more, self._is_off = True, False
        self._look_at, self._note_at = 0.0, math.inf
        self._held_until = 0.0

    def wake(self) -> None:
        """There is something new in the store."""
        self._is_more = True
        self._stir.set()

    async def run(self) -> None:
        """Sends until it is cancelled: what is in flight then is cut and stays due. Raises what the store raises."""
        try:
            async with self._channel.sender() as sender, asyncio.TaskGroup() as tasks:
                for _ in range(self._channel.concurrency):
                    tasks.create_task(self._send(sender))
                tasks.create_task(self._keep_books())
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        finally:
            if self._ended:
                self._written(self._ended)

    async def _send(self, sender: Sender) -> None:
        while True:
            delivery = await self._waiting.get()
            if self._is_more and self._is_low():
                self._stir.set()
            if not self._is_open():
                self._known.discard(delivery.notification_id)
                continue
            result = await _sent(sender, delivery)
            if isinstance(result, Retry) and result.after is not None:
                self._held_until = max(self._held_until, time.monotonic() + result.after)
            attempt = _attempt(result, self._channel, delivery)
            self._is_off |= attempt.disable
            self._ended.append(attempt)
            if len(self._ended) == 1:
                self._note_at = time.monotonic() + GATHER_SECONDS
                self._stir.set()

    async def _keep_books(self) -> None:
        """Fetches and notes in turn, so that no message is fetched whose end is being noted."""
        while True:
            wait = min(self._look_at, self._note_at) - time.monotonic()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, wait)):  # Python 3.11's wait_for may swallow a cancellation
                    await self._stir.wait()
            self._stir.clear()
            if time.monotonic() >= self._look_at:  # the time of a retry may have come
                self._is_more, self._look_at = True, time.monotonic() + LOOK_SECONDS
            if self._is_more and self._is_low() and self._is_open():
                await self._fetch()
            if time.monotonic() >= self._note_at:
                await self._note()

    async def _fetch(self) -> None:
        limit = AHEAD * self._channel.concurrency + len(self._known)  # what is known is still due: look past it
        self._is_more = False  # before looking: what comes meanwhile may not be seen
        due = await asyncio.to_thread(self._due, limit)
        self._is_more |= len(due) == limit
        for delivery in due:
            if delivery.notification_id not in self._known:
                self._known.add(delivery.notification_id)
                self._waiting.put_nowait(delivery)

    async def _note(self) -> None:
        attempts, self._ended, self._note_at = self._ended, [], math.inf
        writing = asyncio.create_task(asyncio.to_thread(self._written, attempts))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            await writing  # what was sent is noted before this lane ends, or the next one would send it again
            raise
        self._known.difference_update(attempt.delivery.notification_id for attempt in attempts)
        self.wake()  # what was told after these of their cases may go now
        if self._is_off and not self._ended:  # the store knows that it is off, and says when it no longer is
            while not self._waiting.empty():
                self._known.discard(self._waiting.get_nowait().notification_id)
            self._is_off = False

    def _is_open(self) -> bool:
        return not self._is_off and time.monotonic() >= self._held_until and self._may()

    def _is_low(self) -> bool:
        return self._waiting.qsize() <= AHEAD * self._channel.concurrency // 2

    def _due(self, limit: int) -> list[Delivery]:
        with self._store.reading() as t:
            return [] if self._name in t.deliveries.disabled() else t.deliveries.due(self._name, limit)

    def _written(self, attempts: Sequence[Attempt]) -> None:
        failed = [a for a in attempts if a.state == FAILED]
        with self._store.transaction(alone=bool(failed)) as t:
            t.deliveries.settle(attempts)
            for attempt in failed:
                d = attempt.delivery
                error = Undeliverable(f"channel {d.channel}: {attempt.error} ({d.attempts + 1} attempts)")
                sent = t.outbox.called(d.notification_id)
                record = Record(sent.topic, sent.partition, sent.seq, sent.key, sent.value, sent.headers)
                t.outbox.send([dead_letter(record, "deliver", error, self._topics, t.outbox.number, t.now)])
            for attempt in attempts:
                if attempt.disable:
                    t.deliveries.disable(attempt.delivery.channel, str(attempt.error))
        states = Counter(attempt.state for attempt in attempts)
        self._metrics.deliveries(self._name, sent=states[SENT], retried=states[DUE], failed=states[FAILED])
        self._metrics.dead_letters(len(failed), "deliver")
        for attempt in attempts:
            if attempt.disable or attempt.state == FAILED:
                logger().error(
                    "channel turned off" if attempt.disable else "delivery given up",
                    channel=attempt.delivery.channel,
                    notification_id=attempt.delivery.notification_id,
                    error=attempt.error,
                )


def _attempt(result: Result, channel: Channel, delivery: Delivery) -> Attempt:
    now = time.time()
    match result:
        case Sent():
            return Attempt(delivery, SENT, now)
        case Drop(error, True):
            return Attempt(delivery, DUE, now, error, disable=True)
        case Drop(error, _):
            return Attempt(delivery, FAILED, now, error)
        case Retry(error, _) if delivery.attempts + 1 >= channel.attempts:
            return Attempt(delivery, FAILED, now, error)
        case Retry(error, after):
            wait = wait_seconds(channel, delivery.attempts + 1, after, random.random())
            return Attempt(delivery, DUE, now + wait, error)


async def _sent(sender: Sender, delivery: Delivery) -> Result:
    message = Message(delivery.notification_id, delivery.body, msgspec.json.decode(delivery.body)["data"])
    try:
        return await sender.send(message)
    except SecretUnusable as fault:
        return Retry(str(fault))
    except Exception as fault:  # the channel's own; its text may hold a secret
        return Retry(f"the channel failed: {type(fault).__name__}")


def wait_seconds(channel: Channel, attempts: int, asked: float | None, chance: float) -> float:
    """How long to wait after the failed attempt number `attempts` (from 1); `chance` in 0..1 spreads the load."""
    backoff = min(channel.first_retry * math.pow(RETRY_FACTOR, attempts - 1), channel.max_retry)
    return max(backoff * (1 + JITTER * (2 * chance - 1)), asked or 0.0)
