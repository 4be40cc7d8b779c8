"""Standard output that has results alone, whatever an author's code writes there."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO


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
