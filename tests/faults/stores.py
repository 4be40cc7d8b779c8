"""What the sinks of a campaign have written, as DuckDB, deltalake and redis read it; nothing of Lozenge is imported."""

import json
from pathlib import Path

import duckdb
import redis
from deltalake import DeltaTable

from tests.faults.oracle import PartitionOffset

CACHE = "last_authorisation"


def tables_in(archive: Path) -> list[str]:
    """The topics that have a table."""
    return [log.parent.name for log in archive.glob("*/_delta_log")]


def places_in(table: Path) -> list[PartitionOffset]:
    """Partition and offset of each row of a Delta table; none if there is no table."""
    if not DeltaTable.is_deltatable(str(table)) or not (files := DeltaTable(table).file_uris()):
        return []
    asked = 'SELECT "partition", "offset" FROM read_parquet(?, hive_partitioning = false)'
    with duckdb.connect(":memory:") as connection:
        return connection.execute(asked, [files]).fetchall()


def cached_events(url: str) -> dict[str, str]:
    """The id of the event of each key of the cache."""
    prefix = f"{{{CACHE}}}:"
    with redis.Redis.from_url(url, decode_responses=True) as client:
        found = {key.removeprefix(prefix): client.hget(key, "value") for key in client.scan_iter(f"{prefix}*")}
    return {key: json.loads(str(value))["event_id"] for key, value in found.items()}
