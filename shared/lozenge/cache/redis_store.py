"""A cache in Redis, or in what speaks as Redis does, such as Valkey.

The entry of a key is the hash `{NAME}:KEY` with the fields `value` (JSON), `partition`, `epoch`, `offset` and `at`; a
tombstone has no `value`. `{NAME}/positions` has the position of each partition. In a cluster one node has all of a
cache, as the braces say, because a script writes entries and position as one.

What a failover loses are whole scripts, the newest ones. The position is lost with its entries, so the sink reads
the records again.
"""

from collections.abc import Sequence

from lozenge.cache.entries import CacheEntry, CachePosition, Lifetimes
from lozenge.cache.redis_server import RedisServer, position_text

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
    redis.call('HSET', KEYS[number], 'epoch', ARGV[4], 'partition', ARGV[1], 'offset', offset, 'at', written)
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


class RedisStore:
    """The cache `name` on one server; used by one thread."""

    def __init__(self, url: str, name: str, lifetimes: Lifetimes) -> None:
        """Connects with the first call. Raises ConfigError for a URL that is none."""
        self._server, self._lifetimes = RedisServer(url, name), lifetimes
        self._write = self._server.client.register_script(_WRITE)

    def positions(self) -> dict[int, CachePosition]:
        """As `CacheStore.positions`."""
        return self._server.positions()

    def write(
        self, partition: int, seen: CachePosition | None, reached: CachePosition, entries: Sequence[CacheEntry]
    ) -> bool:
        """As `CacheStore.write`, in one script."""
        keys = [self._server.positions_key, *(self._server.key_of(entry.key) for entry in entries)]
        before = "" if seen is None else position_text(seen)
        arguments: list[str | int] = [partition, before, position_text(reached), reached.epoch]
        for entry in entries:
            until = self._lifetimes.expires_at(entry)
            arguments += [entry.offset, entry.at, "" if until is None else until]
            arguments += [0, ""] if entry.value is None else [1, entry.value]
        return bool(self._server.call(lambda: self._write(keys=keys, args=arguments)))

    def delete_expired(self) -> int:
        """Nothing to do: the server deletes them by itself."""
        return 0

    def close(self) -> None:
        """Closes the connection."""
        self._server.close()
