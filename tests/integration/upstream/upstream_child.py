"""`python upstream_child.py POINT`: runs upstream and kills it, as a power cut would, in its second batch there.

Or, at the point SLOW, lets that batch take for ever once its records are written; or, at HELD_UP, stops the process
and its JVM.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from itertools import count
from typing import Any

from lozenge_upstream.__main__ import main
from lozenge_upstream.streaming.transactional_sink import Sink


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hold_up() -> None:
    """Stops this process and its JVM until somebody continues them."""
    os.killpg(0, signal.SIGSTOP)


def in_second(name: str, *, before: Callable[[], object] = int, after: Callable[[], object] = int) -> None:
    """Calls `before` and `after` around the second call of a method of the sink."""
    original, calls = getattr(Sink, name), count(1)

    def wrapped(*args: Any) -> None:
        second = next(calls) == 2
        if second:
            before()
        original(*args)
        if second:
            after()

    setattr(Sink, name, wrapped)


INSIDE = "records and offsets written, not committed"
DEATHS: dict[str, Callable[[], None]] = {
    "nothing written": lambda: in_second("_send", before=die),
    INSIDE: lambda: in_second("_commit", before=die),
    "committed, not noted": lambda: in_second("_commit", after=die),
}
SLOW = "records written, slowly"
HELD_UP = "nothing written, held up"

if __name__ == "__main__":
    others: dict[str, Callable[[], None]] = {
        SLOW: lambda: in_second("_send", after=lambda: time.sleep(600)),
        HELD_UP: lambda: in_second("_send", before=hold_up),
    }
    (DEATHS | others)[sys.argv[1]]()
    code = main()
    sys.stderr.flush()
    os._exit(code)
