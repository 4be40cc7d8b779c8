"""Threads of one channel for blocking calls: lookups, mail, libraries. A call that hangs delays that channel only.

The event loop's own threads are for the workers' access to the store.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Answer = TypeVar("Answer")


class Threads:
    """A pool of threads; a call waits for a free one."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool

    async def run(self, call: Callable[[], Answer]) -> Answer:
        """The result of `call`. If the wait is cancelled, the call keeps its thread until it ends."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)


@contextmanager
def threads(count: int) -> Iterator[Threads]:
    """Up to `count` threads, started as needed. The end does not wait for calls that hang."""
    pool = ThreadPoolExecutor(count, thread_name_prefix="channel")
    try:
        yield Threads(pool)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
