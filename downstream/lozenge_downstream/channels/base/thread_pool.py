"""Threads of a channel's own, for what blocks: lookups, mail, libraries. What hangs there holds up that channel alone.

The event loop's own threads are left to what lanes look up and note in the store.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Answer = TypeVar("Answer")


class Threads:
    """As many as it was given; a call for which none is free waits for one."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool

    async def run(self, what: Callable[[], Answer]) -> Answer:
        """What `what` returns or raises. A wait that is cancelled leaves the thread to its call, until that ends."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, what)


@contextmanager
def threads(count: int) -> Iterator[Threads]:
    """Up to `count` threads, made as they are needed; at the end nobody waits for those that hang."""
    pool = ThreadPoolExecutor(count, thread_name_prefix="channel")
    try:
        yield Threads(pool)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
