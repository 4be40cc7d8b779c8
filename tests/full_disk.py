"""A disk that is full, for this process: the largest size of its files is limited, which needs no root.

A write beyond it fails with EFBIG as one on a full disk does with ENOSPC: both are an OSError of the call that writes.
"""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """No file of this process grows beyond so many bytes within the block."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))
