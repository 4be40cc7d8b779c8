"""The server of a demo's cache: the one that the environment names, or one for this run alone."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from lozenge.errors import UsageError
from lozenge.sink_declarations.cache_sink import CacheSink
from lozenge_deploy.local.redis_server import LocalRedis

URL_VARIABLE = "LOZENGE_CACHE_URL"
"""Names the server of the caches of this project."""


@contextmanager
def cache_server(sink: CacheSink, folder: Path) -> Iterator[str]:
    """The URL of the server; one that is started has its data in `folder`, and ends with the block.

    Raises UsageError if no server can be started, or if the one that is named has this cache already, and what a store
    raises.
    """
    if URL_VARIABLE in os.environ:
        _refuse_used(sink)
        yield os.environ[URL_VARIABLE]
        return
    with LocalRedis(folder) as server:
        yield server.url


def _refuse_used(sink: CacheSink) -> None:
    """The demo's topics are new, so it would write over every key of a cache that others read."""
    from lozenge.cache.stores import store_of

    with closing(store_of(sink)) as store:
        if store.positions():
            raise UsageError(
                f"opening the cache {sink.name} at {URL_VARIABLE}: the server has a cache of this name already",
                hint="name an empty database, such as another number at the end of redis://HOST:PORT/N",
            )
