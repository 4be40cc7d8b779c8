"""Waits until something is so that no event announces."""

import time
from collections.abc import Callable

POLL_SECONDS = 0.05


def wait_until(condition: Callable[[], object], seconds: float, *, poll: float = POLL_SECONDS) -> bool:
    """Returns once the condition is true, or `seconds` are over; whether it is true. It is checked at least once.

    An error of the condition ends the wait.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if (left := deadline - time.monotonic()) <= 0:
            return False
        time.sleep(min(left, poll))
    return True
