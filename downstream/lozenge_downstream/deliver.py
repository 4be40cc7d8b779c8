"""Sends due notifications: one lane per channel, so that a dead receiver slows no other one.

A lane keeps up to `concurrency` messages in flight, notes their results together, and leaves retries
to the store: a message that failed comes back when its time has come, also after a restart.
"""

import asyncio
import math
import random
import threading
import time
from collections.abc import Callable, Mapping

import msgspec

from lozenge.errors import LozengeError, Poison
from lozenge.logs import logger
from lozenge.metrics import Metrics
from lozenge_downstream.arriving import dead_letter
from lozenge_downstream.channels import Channel, Drop, Message, Result, Retry, Sender, Sent
from lozenge_downstream.leases import lane
from lozenge_downstream.model import Record
from lozenge_downstream.store import Store
from lozenge_downstream.store.deliveries import Attempt, Delivery
from lozenge_downstream.store.tables import DUE, FAILED, SENT

LOOK_SECONDS = 0.25
GATHER_SECONDS = 0.005
AGAIN_SECONDS = 5.0
RETRY_FACTOR = 4.0
JITTER = 0.2


class Undeliverable(Poison):
    """A channel refused a message for good, or as often as its configuration allows."""


class Deliverer:
    """Runs a lane for every channel that there is, as it is; those whose lease is another's wait."""

    def __init__(
        self,
        store: Store,
        channels: Callable[[], Mapping[str, Channel]],
        holds: Callable[[str], bool],
        metrics: Metrics,
    ) -> None:
        self._store, self._channels, self._holds, self._metrics = store, channels, holds, metrics
        self._loop: asyncio.AbstractEventLoop | None = None
        self._fresh: dict[str, asyncio.Event] = {}

    def wake(self) -> None:
        """Tells the lanes, from any thread, that there is something new."""
        if self._loop is not None and not self._loop.is_closed():
            for fresh in list(self._fresh.values()):
                self._loop.call_soon_threadsafe(fresh.set)

    def run(self, stop: threading.Event) -> None:
        """Sends until `stop` is set; messages then in flight are cut and stay due."""
        asyncio.run(self._lanes(stop))

    async def _lanes(self, stop: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        running: dict[str, tuple[Channel, asyncio.Task[None]]] = {}
        while not stop.is_set():
            channels = self._channels()
            for name, (channel, task) in list(running.items()):
                if channels.get(name) != channel or task.done():
                    await _ended(task)
                    del running[name]
            for name, channel in channels.items():
                if name not in running:
                    running[name] = channel, asyncio.create_task(self._keep(name, channel, stop))
            await asyncio.sleep(LOOK_SECONDS)
        for _, task in running.values():
            await _ended(task)

    async def _keep(self, name: str, channel: Channel, stop: threading.Event) -> None:
        """A lane that comes back if the channel itself cannot be opened: that is no other one's concern."""
        while not stop.is_set():
            try:
                await self._lane(name, channel, stop)
            except LozengeError:
                raise
            except Exception as error:  # whatever a channel's library may raise; its text may hold a secret
                logger().error("channel cannot be opened", channel=name, error=type(error).__name__)
                await asyncio.sleep(AGAIN_SECONDS)

    async def _lane(self, name: str, channel: Channel, stop: threading.Event) -> None:
        flying: dict[asyncio.Task[Attempt], str] = {}
        fresh = self._fresh[name] = asyncio.Event()
        try:
            async with channel.sender() as sender:
                while not stop.is_set():
                    fresh.clear()
                    if (free := channel.concurrency - len(flying)) and self._holds(lane(name)):
                        # Those in flight are still due in the store, so look past them.
                        due = await asyncio.to_thread(self._due, name, channel.concurrency + len(flying))
                        new = [d for d in due if d.notification_id not in flying.values()][:free]
                        flying |= {asyncio.create_task(_attempt(sender, channel, d)): d.notification_id for d in new}
                    await _first([*flying], fresh)
                    ended = [task for task in flying if task.done()]
                    if ended:
                        await asyncio.to_thread(self._settle, [task.result() for task in ended])
                        for task in ended:
                            del flying[task]
        finally:
            for task in flying:
                task.cancel()

    def _due(self, name: str, limit: int) -> list[Delivery]:
        with self._store.reading() as t:
            return [] if name in t.deliveries.disabled() else t.deliveries.due(name, limit)

    def _settle(self, attempts: list[Attempt]) -> None:
        failed = [a for a in attempts if a.state == FAILED]
        with self._store.transaction(alone=bool(failed)) as t:
            t.deliveries.settle(attempts)
            for attempt in failed:
                d = attempt.delivery
                error = Undeliverable(f"channel {d.channel}: {attempt.error} ({d.attempts + 1} attempts)")
                sent = t.outbox.called(d.notification_id)
                record = Record(sent.topic, sent.partition, sent.seq, sent.key, sent.value, sent.headers)
                t.outbox.send([dead_letter(record, "deliver", error, t.outbox.number, t.now)])
            for attempt in attempts:
                if attempt.disable:
                    t.deliveries.disable(attempt.delivery.channel, str(attempt.error))
        self._metrics.dead_letters(len(failed), "deliver")
        for attempt in attempts:
            if attempt.disable or attempt.state == FAILED:
                logger().error(
                    "channel turned off" if attempt.disable else "delivery given up",
                    channel=attempt.delivery.channel,
                    notification_id=attempt.delivery.notification_id,
                    error=attempt.error,
                )


async def _attempt(sender: Sender, channel: Channel, delivery: Delivery) -> Attempt:
    result = await _sent(sender, delivery)
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
    except Exception as fault:  # the channel's own; its text may hold a secret
        return Retry(f"the channel failed: {type(fault).__name__}")


def wait_seconds(channel: Channel, attempts: int, asked: float | None, chance: float) -> float:
    """How long to wait after the failed attempt number `attempts` (from 1); `chance` in 0..1 spreads the load."""
    backoff = min(channel.first_retry * math.pow(RETRY_FACTOR, attempts - 1), channel.max_retry)
    return max(backoff * (1 + JITTER * (2 * chance - 1)), asked or 0.0)


async def _first(flying: list[asyncio.Task[Attempt]], fresh: asyncio.Event) -> None:
    """Waits until a message is settled, something new arrives, or it is time to look for retries."""
    news = asyncio.create_task(fresh.wait())
    try:
        done, _ = await asyncio.wait([*flying, news], timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        news.cancel()
    if done - {news}:
        await asyncio.sleep(GATHER_SECONDS)  # more are about to end: one transaction notes them all


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error
