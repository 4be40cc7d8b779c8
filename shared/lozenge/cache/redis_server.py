"""A server of Redis's kind that has a cache: the names of its keys, and what its errors mean."""

from collections.abc import Callable
from typing import Any, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from lozenge.cache.entries import CALL_SECONDS, CachePosition, refused, unavailable
from lozenge.errors import ConfigError

_PASSING = redis.ConnectionError, redis.TimeoutError
"""The server is away, starts, or loads its data."""
_PASSING_WORDS = "OOM", "MISCONF", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY"
"""How the answers begin of a server that cannot write now; the client cuts the word of some."""
_PASSING_ANSWERS = redis.exceptions.ReadOnlyError, redis.exceptions.OutOfMemoryError
T = TypeVar("T")


class RedisServer:
    """The server of the cache `name`, by one `client`; used by one thread."""

    def __init__(self, url: str, name: str) -> None:
        """Connects with the first call. Raises ConfigError for a URL that is none."""
        try:
            self.client: Any = redis.Redis.from_url(
                url,
                decode_responses=True,
                socket_timeout=CALL_SECONDS,
                socket_connect_timeout=CALL_SECONDS,
                retry=Retry(NoBackoff(), 0),  # a call whose answer was lost may have been done
            )
        except ValueError as error:
            raise ConfigError(
                f"opening the cache {name}: {error}", hint="name a server as redis://HOST:PORT/DATABASE"
            ) from error
        self._name = name
        self.positions_key = f"{{{name}}}/positions"
        self.prefix = f"{{{name}}}:"

    def key_of(self, key: str) -> str:
        """Where the entry of a key is."""
        return self.prefix + key

    def positions(self) -> dict[int, CachePosition]:
        """As `CacheStore.positions`."""
        found = self.call(lambda: self.client.hgetall(self.positions_key))
        return {int(partition): _position(text) for partition, text in found.items()}

    def call(self, call: Callable[[], T]) -> T:
        """The result of a call of the client; raises CacheUnavailable, and ConfigError if the server refuses."""
        try:
            return call()
        except redis.AuthenticationError as error:
            raise refused(self._name, error) from error
        except _PASSING as error:
            raise unavailable(self._name, error) from error
        except redis.ResponseError as error:
            if str(error).startswith(_PASSING_WORDS) or isinstance(error, _PASSING_ANSWERS):
                raise unavailable(self._name, error) from error
            raise refused(self._name, error) from error

    def close(self) -> None:
        """Closes the connection."""
        self.client.close()


def position_text(position: CachePosition) -> str:
    """A position as the server has it."""
    return f"{position.topic_id} {position.epoch} {position.offset}"


def _position(text: str) -> CachePosition:
    topic_id, epoch, offset = text.split()
    return CachePosition(topic_id, int(epoch), int(offset))
