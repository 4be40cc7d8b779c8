"""A call that is repeated in a thread of its own while a block runs."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def every(seconds: float, call: Callable[[], object], name: str) -> Iterator[None]:
    """Makes `call` after each pause of `seconds`, until the block ends; a call under way then is waited for.

    The thread has the `name`. One that raises ends it, and nobody else.
    """
    ended = threading.Event()

    def again() -> None:
        while not ended.wait(seconds):
            call()

    thread = threading.Thread(target=again, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
