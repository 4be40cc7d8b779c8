"""Waits for a condition, with a deadline that only a failure reaches."""

import time
from collections.abc import Callable

DEADLINE_SECONDS = 90.0
POLL_SECONDS = 0.02


def until(condition: Callable[[], object], what: str = "what was waited for") -> None:
    """Returns once the condition is true; fails if it does not become so in time."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen in time"
        time.sleep(POLL_SECONDS)
