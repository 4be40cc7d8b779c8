"""How a process ends on a signal: at its next boundary, or without one when its time is over.

`StopSignal` is for a loop that looks for the request itself. `stopped_by_signals` is for a process whose main thread
waits in a call, as into Spark: the signal calls a function, and a call that does not return has a deadline.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, Protocol

from lozenge.process.logging import logger
from lozenge.process.waiting import wait_until

STOP_SECONDS = 20.0
"""Less than what a supervisor waits before it kills."""
OVERDUE = 124
"""The exit code of a process that has come to no boundary in time."""


@contextmanager
def stopped_by_signals(stop: Callable[[], None], doing: str) -> Iterator[None]:
    """Within the block SIGTERM and SIGINT call `stop`; if the block still runs `STOP_SECONDS` later, the process ends.

    Whatever is in flight then is not committed. Only for the main thread.
    """
    overdue = threading.Timer(STOP_SECONDS, _give_up, [doing])
    overdue.daemon = True

    def asked(*_: object) -> None:
        stop()
        if overdue.ident is None:  # else it was asked before
            overdue.start()

    before = {number: signal.signal(number, asked) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        overdue.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)


class Stop(Protocol):
    """A request to stop that a loop can wait for, such as a `StopSignal` or a `threading.Event`."""

    def wait(self, seconds: float, /) -> bool:
        """Sleeps for `seconds`, or until the request; returns whether it was made."""
        ...


class StopSignal:
    """Whether SIGTERM or SIGINT was received; a plain flag, because a signal handler must not take locks."""

    def __init__(self) -> None:
        self.requested = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._request)

    def __call__(self) -> bool:
        return self.requested

    def wait(self, seconds: float) -> bool:
        """Sleeps for `seconds`, or until a signal; returns whether one was received."""
        return wait_until(self, seconds)

    def _request(self, *_: object) -> None:
        self.requested = True


def end(code: int) -> NoReturn:
    """Ends this process with `code`, with all that it has said, and waits for no thread: Spark's would hold it long."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _give_up(doing: str) -> None:
    logger().warning(
        f"{doing}: still running {STOP_SECONDS:g} s after the signal to stop; the process ends now",
        hint="nothing of it is committed; the next start does it again",
    )
    end(OVERDUE)
