"""A cache in Redis, or in what speaks as Redis does, such as Valkey.

The entry of a key is the hash `{NAME}:KEY` with the fields `value` (JSON), `partition`, `epoch`, `offset` and `at`; a
tombstone has no `value`. `{NAME}/positions` has the position of each partition. In a cluster one node has all of a
cache, as the braces say, because a script writes entries and position as one.

What a failover loses are whole scripts, the newest ones. The position is lost with its entries, so the sink reads
the records again.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from lozenge.cache.entries import CacheEntry, CachePosition, Lifetimes
from lozenge.cache.redis_server import RedisServer, position_text
from lozenge.protocol.data_subject import DataSubject

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
# An entry of another key that has got another record since then stays.
_ERASE = """
if ARGV[1] ~= '' and redis.call('HGET', KEYS[1], 'value') ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
"""
_SCANNED = 1_000
"""Entries that an erasure looks at with one call."""


class RedisStore:
    """The cache `name` on one server; used by one thread."""

    def __init__(self, url: str, name: str, lifetimes: Lifetimes) -> None:
        """Connects with the first call. Raises ConfigError for a URL that is none."""
        self._server, self._lifetimes = RedisServer(url, name), lifetimes
        self._write = self._server.client.register_script(_WRITE)
        self._erase = self._server.client.register_script(_ERASE)

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

    def erase(self, subject: DataSubject, *, dry_run: bool) -> int:
        """As `CacheStore.erase`; it looks at every entry."""

        def erased() -> int:
            found, every = 0, self._server.client.scan_iter(f"{self._server.prefix}*", count=_SCANNED)
            for keys in batched(every, _SCANNED):
                found += sum(self._erased(keys, subject, dry_run=dry_run))
            return found

        return self._server.call(erased)

    def _erased(self, keys: Sequence[str], subject: DataSubject, *, dry_run: bool) -> Iterator[int]:
        pipeline = self._server.client.pipeline(transaction=False)
        for key in keys:
            pipeline.hget(key, "value")
        for key, value in zip(keys, pipeline.execute(), strict=True):
            if subject.is_in(key.removeprefix(self._server.prefix)):
                yield 1 if dry_run else self._erase(keys=[key], args=[""])
            elif value is not None and subject.is_in(value):
                yield 1 if dry_run else self._erase(keys=[key], args=[value])

    def close(self) -> None:
        """Closes the connection."""
        self._server.close()


def batched(keys: Iterable[str], size: int) -> Iterator[list[str]]:
    """The keys in lists of this size; a scan may give a key twice."""
    waiting = iter(keys)
    while batch := list(dict.fromkeys(islice(waiting, size))):
        yield batch
