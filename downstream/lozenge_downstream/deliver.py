"""Sends due webhook messages: one lane per webhook, so that a dead receiver slows no other one.

A lane keeps up to `concurrency` requests in flight, notes their results together, and leaves retries
to the store: a message that failed comes back when its time has come, also after a restart.
"""

import asyncio
import random
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from lozenge.errors import Poison
from lozenge.logs import logger
from lozenge.metrics import Metrics
from lozenge_downstream.batch import Attempt, Delivery
from lozenge_downstream.config import Webhook
from lozenge_downstream.pipeline import dead_letter
from lozenge_downstream.store import Store
from lozenge_downstream.tables import DUE, FAILED, SENT
from lozenge_downstream.webhook import Retry, Sender, Sent, wait_seconds

LOOK_SECONDS = 0.25
GATHER_SECONDS = 0.005


class Undeliverable(Poison):
    """A webhook refused a message as often as its configuration allows."""


class Deliverer:
    """Runs every lane."""

    def __init__(self, store: Store, webhooks: Mapping[str, Webhook], metrics: Metrics) -> None:
        self._store = store
        self._webhooks = webhooks
        self._metrics = metrics
        self._loop: asyncio.AbstractEventLoop | None = None
        self._fresh: list[asyncio.Event] = []

    def wake(self) -> None:
        """Tells the lanes, from any thread, that there is something new."""
        if self._loop is not None and not self._loop.is_closed():
            for fresh in self._fresh:
                self._loop.call_soon_threadsafe(fresh.set)

    def run(self, stop: threading.Event) -> None:
        """Sends until `stop` is set; requests then in flight are cut and stay due."""
        asyncio.run(self._lanes(stop))

    async def _lanes(self, stop: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as lanes:
            for name, webhook in self._webhooks.items():
                lanes.create_task(self._lane(name, webhook, stop))

    async def _lane(self, name: str, webhook: Webhook, stop: threading.Event) -> None:
        flying: dict[asyncio.Task[Attempt], str] = {}
        self._fresh.append(fresh := asyncio.Event())
        async with Sender(webhook) as sender:
            while not stop.is_set():
                fresh.clear()
                if free := webhook.concurrency - len(flying):
                    # Those in flight are still due in the store, so look past them.
                    due = await asyncio.to_thread(self._store.due, name, webhook.concurrency + len(flying))
                    new = [d for d in due if d.notification_id not in flying.values()][:free]
                    flying |= {asyncio.create_task(_attempt(sender, webhook, d)): d.notification_id for d in new}
                await _first([*flying], fresh)
                ended = [task for task in flying if task.done()]
                if ended:
                    await asyncio.to_thread(self._settle, [task.result() for task in ended])
                    for task in ended:
                        del flying[task]
            for task in flying:
                task.cancel()

    def _settle(self, attempts: list[Attempt]) -> None:
        failed = [a for a in attempts if a.state == FAILED]
        with self._store.transaction() as batch:
            batch.settle(attempts)
            for attempt in failed:
                d = attempt.delivery
                error = Undeliverable(f"webhook {d.webhook}: {attempt.error} ({d.attempts + 1} attempts)")
                record = batch.notification(d.notification_id)
                batch.send([dead_letter(record, "deliver", error, batch.number, datetime.now(UTC))])
        self._metrics.dead_letters(len(failed), "deliver")
        for attempt in failed:
            d = attempt.delivery
            logger().error(
                "webhook given up", webhook=d.webhook, notification_id=d.notification_id, error=attempt.error
            )


async def _attempt(sender: Sender, webhook: Webhook, delivery: Delivery) -> Attempt:
    result = await sender.send(delivery.notification_id, delivery.body)
    now = time.time()
    match result:
        case Sent():
            return Attempt(delivery, SENT, now)
        case Retry(error, _) if delivery.attempts + 1 >= webhook.attempts:
            return Attempt(delivery, FAILED, now, error)
        case Retry(error, after):
            wait = wait_seconds(webhook, delivery.attempts + 1, after, random.random())
            return Attempt(delivery, DUE, now + wait, error)


async def _first(flying: list[asyncio.Task[Attempt]], fresh: asyncio.Event) -> None:
    """Waits until a request ends, something new arrives, or it is time to look for retries."""
    news = asyncio.create_task(fresh.wait())
    try:
        done, _ = await asyncio.wait([*flying, news], timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        news.cancel()
    if done - {news}:
        await asyncio.sleep(GATHER_SECONDS)  # more are about to end: one transaction notes them all
