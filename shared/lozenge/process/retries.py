"""Retries of a call whose dependency may be away for a while."""

import time
from collections.abc import Callable
from itertools import count
from typing import TypeVar

import stamina
from stamina.instrumentation import set_on_retry_hooks

T = TypeVar("T")


def retry(
    call: Callable[[], T],
    on: Callable[[Exception], bool],
    *,
    seconds: float,
    pause: float,
    attempts: int = 1,
    jitter: float = 0.0,
) -> T:
    """The result of `call`, which is repeated after `pause` while it raises an error of which `on` is true.

    A random part of `jitter` seconds is added to each pause, so that two callers do not disturb each other for ever.

    Raises the last error once `seconds` are over and it was called at least `attempts` times: a process that was
    suspended has not waited for the dependency.
    """
    set_on_retry_hooks(())  # stamina's own log every attempt and count it in Prometheus's global registry
    deadline, made = time.monotonic() + seconds, count(1)

    def again(error: Exception) -> bool:
        return on(error) and (next(made) < attempts or time.monotonic() < deadline)

    caller = stamina.RetryingCaller(
        attempts=None,
        timeout=None,
        wait_initial=pause,
        wait_max=pause + jitter,
        wait_jitter=jitter,
        wait_exp_base=1,
    )
    return caller(again, call)
