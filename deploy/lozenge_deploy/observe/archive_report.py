"""What an archive has, and whether that is exactly what its topics have."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from lozenge.apps import is_sink
from lozenge.archive.delta_table import ArchiveTable
from lozenge.archive.queries import ArchiveQueries
from lozenge.archive.verification import PartitionProof, proof
from lozenge.errors import TopicError
from lozenge.kafka.dead_letter_queue import apps_with_dead_letters, read_dead_letters
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.topic_reader import bounds, read

MEGABYTE = 1_000_000


def table_rows(tables: Sequence[ArchiveTable]) -> Iterator[dict[str, Any]]:
    """A row for each table: how much it has, since when, and when it was committed last."""
    for table in tables:
        files = table.files()
        committed = table.committed_at()
        yield {
            "table": table.view,
            "topic": table.topic,
            "rows": sum(file.rows for file in files),
            "files": len(files),
            "mb": round(sum(file.size for file in files) / MEGABYTE, 1),
            "from": str(files[0].day) if files else None,
            "to": str(files[-1].day) if files else None,
            "version": table.version,
            "committed_seconds_ago": round((datetime.now(UTC) - committed).total_seconds()) if committed else None,
        }


def proofs(kafka: KafkaSettings, tables: Sequence[ArchiveTable], memory_mb: int) -> Iterator[PartitionProof]:
    """The proof of each partition of each table, one after the other; what is retained of a topic is read once.

    A record that is archived meanwhile is no part of it: the ends are those of the tables as they were read. Raises
    BrokerUnavailable, TopicError if a topic is gone.
    """
    existing, dead = partitions(kafka), dead_records(kafka)
    with ArchiveQueries(tables, memory_mb=memory_mb) as queries:
        for table in tables:
            if table.topic not in existing:
                raise TopicError(
                    f"verifying {table.view}: there is no topic {table.topic} at {kafka.bootstrap}",
                    hint="name the platform of this archive by LOZENGE_KAFKA_BOOTSTRAP and LOZENGE_TOPIC_PREFIX",
                )
            limits = bounds(kafka, table.topic, existing[table.topic])
            ends = table.ends(range(existing[table.topic]))
            for partition, end in sorted(ends.items()):
                earliest = limits[partition][0]
                begin = {partition: earliest}
                records = (message.offset() or 0 for message in read(kafka, table.topic, begin, doing="verifying"))
                failed = dead.get((table.topic, partition), frozenset())
                rows = queries.offsets(table, partition)
                yield proof(table.topic, partition, end, rows, records, earliest, failed)


def dead_records(kafka: KafkaSettings) -> dict[tuple[str, int], frozenset[int]]:
    """The records that are dead letters of a sink, by topic and partition."""
    found: dict[tuple[str, int], set[int]] = {}
    for app in filter(is_sink, apps_with_dead_letters(kafka)):
        for dead in read_dead_letters(kafka, app):
            found.setdefault((dead.topic, dead.origin[0]), set()).add(dead.origin[1])
    return {partition: frozenset(offsets) for partition, offsets in found.items()}
