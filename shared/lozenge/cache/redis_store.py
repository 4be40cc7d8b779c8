"""A cache in Redis, or in what speaks as Redis does, such as Valkey.

The entry of a key is the hash `{NAME}:KEY` with the fields `value` (JSON), `epoch`, `offset` and `at`; a tombstone
has no `value`. `{NAME}/positions` has the position of each partition. In a cluster one node has all of a cache, as the
braces say, because a script writes entries and position as one.

What a failover loses are whole scripts, the newest ones. The position is lost with its entries, so the sink reads
the records again.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from lozenge.cache.entries import CALL_SECONDS, CacheEntry, CachePosition, Lifetimes, refused, unavailable
from lozenge.errors import ConfigError

# Its first write is one that a server without memory refuses: later ones of a script that has written are not.
_WRITE = """
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then
  return 0
end
local epoch, at = tonumber(ARGV[4]), 5
for number = 2, #KEYS do
  local offset, written, expires, value = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 4]
  local old = redis.call('HMGET', KEYS[number], 'epoch', 'offset')
  local old_epoch, old_offset = tonumber(old[1] or -1), tonumber(old[2] or -1)
  if old_epoch < epoch or (old_epoch == epoch and old_offset < tonumber(offset)) then
    redis.call('HSET', KEYS[number], 'epoch', ARGV[4], 'offset', offset, 'at', written)
    if ARGV[at + 3] == '1' then
      redis.call('HSET', KEYS[number], 'value', value)
    else
      redis.call('HDEL', KEYS[number], 'value')
    end
    if expires ~= '' then
      redis.call('PEXPIREAT', KEYS[number], expires)
    else
      redis.call('PERSIST', KEYS[number])
    end
  end
  at = at + 5
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
"""
_PASSING = redis.ConnectionError, redis.TimeoutError
"""The server is away, starts, or loads its data."""
_PASSING_WORDS = "OOM", "MISCONF", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY"
"""How the answers begin of a server that cannot write now; the client cuts the word of some."""
_PASSING_ANSWERS = redis.exceptions.ReadOnlyError, redis.exceptions.OutOfMemoryError
T = TypeVar("T")


class RedisStore:
    """The cache `name` on one server; used by one thread."""

    def __init__(self, url: str, name: str, lifetimes: Lifetimes) -> None:
        """Connects with the first call. Raises ConfigError for a URL that is none."""
        try:
            self._client: Any = redis.Redis.from_url(
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
        self._name, self._lifetimes = name, lifetimes
        self._positions = f"{{{name}}}/positions"
        self._write = self._client.register_script(_WRITE)

    def positions(self) -> dict[int, CachePosition]:
        """As `CacheStore.positions`."""
        found = self._call(lambda: self._client.hgetall(self._positions))
        return {int(partition): _position(text) for partition, text in found.items()}

    def write(
        self, partition: int, seen: CachePosition | None, reached: CachePosition, entries: Sequence[CacheEntry]
    ) -> bool:
        """As `CacheStore.write`, in one script."""
        keys = [self._positions, *(f"{{{self._name}}}:{entry.key}" for entry in entries)]
        arguments: list[str | int] = [partition, "" if seen is None else _text(seen), _text(reached), reached.epoch]
        for entry in entries:
            until = self._lifetimes.expires_at(entry)
            arguments += [entry.offset, entry.at, "" if until is None else until]
            arguments += [0, ""] if entry.value is None else [1, entry.value]
        return bool(self._call(lambda: self._write(keys=keys, args=arguments)))

    def delete_expired(self) -> int:
        """Nothing to do: the server deletes them by itself."""
        return 0

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()

    def _call(self, call: Callable[[], T]) -> T:
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


def _text(position: CachePosition) -> str:
    return f"{position.topic_id} {position.epoch} {position.offset}"


def _position(text: str) -> CachePosition:
    topic_id, epoch, offset = text.split()
    return CachePosition(topic_id, int(epoch), int(offset))
