"""Everything around Python that Spark needs: a Java, the pinned jars, a class-data archive.

`make setup` installs it once per user (`python -m lozenge.toolchain`); afterwards the modules here
only look things up. What is downloaded or generated lives in `cache_path()` and may be deleted at
any time: the next set-up makes it again.
"""

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_path(*parts: str) -> Path:
    """A place in the user's cache; `LOZENGE_CACHE` moves the whole of it, for instance into an image."""
    root = os.environ.get("LOZENGE_CACHE")
    return (Path(root) if root else user_cache_path("lozenge", appauthor=False)).joinpath(*parts)
