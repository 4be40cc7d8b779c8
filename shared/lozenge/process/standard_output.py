"""Standard output that has results alone: whatever an author's code writes there, and if there is no result."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO

from lozenge.errors import LozengeError


@contextmanager
def for_results() -> Iterator[TextIO]:
    """Yields what results are written to.

    Within the block everything else goes to standard error: what Python prints, and what native code and child
    processes write.
    """
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with os.fdopen(os.dup(kept), "w", encoding="utf-8") as results, redirect_stdout(sys.stderr):
            yield results
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def print_answer(answer: Callable[[], str]) -> int:
    """Prints what a tool answers; returns the exit code. An error for a person goes to standard error instead."""
    try:
        print(answer())
    except LozengeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0
