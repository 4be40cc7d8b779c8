"""A process of this machine that another one may have started: whether it is still the same, and runs."""

import contextlib
import os

import psutil

NICE = 10
"""A starting JVM must not slow down the running ones; see `raise_priority`."""
CLOCK_SECONDS = 2.0
"""Two readings of one process's start time differ by less, even if the clock was set in between."""


def known_process(pid: int, created: float) -> psutil.Process | None:
    """The process with this id if it was created then; None if it has ended, also if a later one has its id."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return process if abs(process.create_time() - created) < CLOCK_SECONDS else None
    return None


def runs(process: psutil.Process) -> bool:
    """Whether it runs; a process that waits to be reaped does not."""
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def raise_priority(group: int) -> None:
    """Sets the nice value of a process group to 0, if the system permits it."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PGRP, group, 0)
