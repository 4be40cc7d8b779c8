"""Runs a worker for each channel, so that a receiver that does not answer delays no other one."""

import asyncio
import threading
from collections.abc import Callable, Mapping

from lozenge.contracts.topics import Topics
from lozenge.errors import LozengeError
from lozenge.metrics.app_metrics import NotifierMetrics
from lozenge.process.logging import logger
from lozenge_downstream import lease_holder
from lozenge_downstream.channels.base.channel import Channel
from lozenge_downstream.delivery.channel_worker import POLL_SECONDS, ChannelWorker
from lozenge_downstream.delivery.stored_deliveries import StoredDeliveries
from lozenge_downstream.store import Store

RESTART_SECONDS = 5.0


class Dispatcher:
    """Runs a worker for each configured channel. A worker whose lease another notifier holds waits."""

    def __init__(
        self,
        store: Store,
        topics: Topics,
        channels: Callable[[], Mapping[str, Channel]],
        holds: Callable[[str], bool],
        metrics: NotifierMetrics,
    ) -> None:
        self._store, self._topics = store, topics
        self._channels, self._holds, self._metrics = channels, holds, metrics
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = threading.Lock()  # so that nothing is scheduled on a loop that has ended
        self._workers: dict[str, ChannelWorker] = {}

    def wake(self) -> None:
        """Signals the workers, from any thread, that the store may have new deliveries; does nothing after `run`."""
        with self._ending:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._wake_workers)

    def run(self, stop: threading.Event) -> None:
        """Sends until `stop` is set; messages in flight are cut and stay due."""
        asyncio.run(self._run(stop))

    async def _run(self, stop: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            await self._keep_all(stop)
        finally:
            with self._ending:
                self._loop = None

    def _wake_workers(self) -> None:
        for worker in self._workers.values():
            worker.wake()

    async def _keep_all(self, stop: threading.Event) -> None:
        running: dict[str, tuple[Channel, asyncio.Task[None]]] = {}
        while not stop.is_set():
            channels = self._channels()
            for name, (channel, task) in list(running.items()):
                if channels.get(name) != channel or task.done():
                    await _ended(task)
                    del running[name]
            for name, channel in channels.items():
                if name not in running:
                    running[name] = channel, asyncio.create_task(self._keep(name, channel))
            await asyncio.sleep(POLL_SECONDS)
        for _, task in running.values():
            await _ended(task)

    async def _keep(self, name: str, channel: Channel) -> None:
        """Runs a worker, and starts it again if the channel cannot be opened; other channels are not affected."""
        while True:
            deliveries = StoredDeliveries(name, self._store, self._topics, self._metrics)
            worker = ChannelWorker(channel, deliveries, lambda: self._holds(lease_holder.channel_lease(name)))
            self._workers[name] = worker
            try:
                await worker.run()
            except LozengeError:
                raise
            except Exception as error:  # of a channel's library; its text may contain a secret
                cause = _cause(error)
                logger().error("channel cannot be opened", channel=name, error=cause)
                await worker.postpone(f"the channel cannot be opened: {cause}")
                await asyncio.sleep(RESTART_SECONDS)
            finally:
                self._workers.pop(name, None)


def _cause(error: Exception) -> str:
    """What a person may know of an error of a channel's library."""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return f"the package {missing} is not installed" if missing else type(error).__name__


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error
