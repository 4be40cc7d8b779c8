"""Waits for a condition, with a deadline that only a failure reaches."""

from collections.abc import Callable

from lozenge.process.waiting import wait_until

DEADLINE_SECONDS = 90.0
POLL_SECONDS = 0.02


def until(condition: Callable[[], object], what: str = "what was waited for") -> None:
    """Returns once the condition is true; fails if it does not become so in time."""
    assert wait_until(condition, DEADLINE_SECONDS, poll=POLL_SECONDS), f"{what} did not happen in time"
