"""A channel worker that is cancelled records what it sent; the waits between its attempts grow."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from lozenge.contracts.topics import Topics
from lozenge.metrics.app_metrics import NotifierMetrics
from lozenge_downstream.channels.base.channel import Channel
from lozenge_downstream.delivery.channel_worker import ChannelWorker, wait_seconds
from lozenge_downstream.delivery.stored_deliveries import StoredDeliveries
from lozenge_downstream.routing.config import Routing
from lozenge_downstream.store import Store
from tests.downstream.channels.conftest import receiving
from tests.downstream.conftest import Desk, alert_record
from tests.downstream.delivery.conftest import hook


def deliveries_of(store: Store) -> StoredDeliveries:
    return StoredDeliveries("ops", store, Topics(), NotifierMetrics("test"))


async def woken_and_cancelled(store: Store, channel: Channel, steps: int) -> bool:
    """Whether a worker ends that is cancelled so many steps of the event loop after it was woken."""
    worker = ChannelWorker(channel, deliveries_of(store), lambda: False)
    running = asyncio.create_task(worker.run())
    await asyncio.sleep(0.05)
    worker.wake()
    for _ in range(steps):
        await asyncio.sleep(0)
    running.cancel()
    ended, _ = await asyncio.wait([running], timeout=5)
    return bool(ended)


@pytest.mark.parametrize("steps", range(5))
def test_a_worker_that_is_cancelled_while_it_is_woken_ends(store: Store, steps: int) -> None:
    channel = Routing.model_validate({"channels": {"ops": hook("http://127.0.0.1:1/")}}).channels["ops"]
    assert asyncio.run(woken_and_cancelled(store, channel, steps))


async def cancelled_while_noting(worker: ChannelWorker) -> None:
    noting = asyncio.create_task(worker._record())
    await asyncio.sleep(0.05)
    noting.cancel()
    await asyncio.wait([noting], timeout=5)
    assert noting.cancelled()


def test_a_cancelled_worker_records_what_it_sent_before_it_ends(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    channel = Routing.model_validate({"channels": {"ops": hook("http://127.0.0.1:1/")}}).channels["ops"]
    deliveries, noted = deliveries_of(store), []
    worker = ChannelWorker(channel, deliveries, lambda: True)

    def slowly(attempts: Any) -> None:
        time.sleep(0.2)
        noted.append(attempts)

    async def run() -> bool:
        await cancelled_while_noting(worker)
        return bool(noted)

    monkeypatch.setattr(deliveries, "record", slowly)
    assert asyncio.run(run()), "else the worker after it would fetch and send them again"


def test_the_waits_between_attempts_grow_to_a_bound() -> None:
    channel = Routing.model_validate({"channels": {"c": hook("http://h/", first_retry=5, max_retry=100)}}).channels["c"]
    assert [wait_seconds(channel, n, None, 0.5) for n in (1, 2, 3, 4, 90)] == [5, 20, 80, 100, 100]
    assert wait_seconds(channel, 1, None, 0.0) == 4
    assert wait_seconds(channel, 1, None, 1.0) == 6
    assert wait_seconds(channel, 1, 60.0, 0.5) == 60
    assert wait_seconds(channel, 3, 60.0, 0.5) == 80


@pytest.mark.parametrize("status", [400, 410, 500])
def test_whatever_bytes_a_receiver_answers_its_error_is_recorded(
    desk: Desk, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "k" * 32)
    with receiving(status, answer=b"\xff\x00\x1b[2Jno\n") as (url, _):
        pager = {"type": "pagerduty", "key": {"env": "KEY"}, "url": url, "networks": ["127.0.0.0/8"]}
        desk.routing(channels={"ops": pager}, route={"channels": ["ops"]})
        desk.take(alert_record())
        worker = ChannelWorker(desk.pipeline.routing.channels["ops"], deliveries_of(desk.store), lambda: True)
        asyncio.run(_until(worker, lambda: bool(_errors(desk))))
    (error,) = _errors(desk)
    refused = "the receiver refuses all messages"
    assert error == f"HTTP {status}: {refused if status == 410 else chr(0xFFFD) * 3 + '[2Jno'}"


async def _until(worker: ChannelWorker, done: Callable[[], bool]) -> None:
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(10):
        while not done() and not running.done():
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait([running])
    if not running.cancelled() and (error := running.exception()) is not None:
        raise error


def _errors(desk: Desk) -> list[str]:
    with desk.store.reading() as t:
        (sent,) = desk.notifications()
        return [row["error"] for row in t.deliveries.of([sent["notification_id"]]) if row["error"]]
