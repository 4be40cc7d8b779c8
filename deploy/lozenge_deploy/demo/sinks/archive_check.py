"""The tables of an archive compared with their topics: rows are counted by DuckDB, records by kafka-python."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from lozenge.contracts.dead_letters import SOURCE_TOPIC
from lozenge.kafka.settings import KafkaSettings
from lozenge.sink_declarations.archive_sink import ArchiveSink
from lozenge_deploy.demo.committed_records import each_committed, header
from lozenge_deploy.demo.reconciliation import Comparison


class TableCount(NamedTuple):
    """A table and its topic. `places` are the different pairs of partition and offset among the `rows`.

    `dead_letters` are of the sink, about records of the topic; `records` are those that are committed there.
    """

    topic: str
    rows: int
    places: int
    dead_letters: int
    records: int


def archive_comparisons(sink: ArchiveSink, counts: Sequence[TableCount]) -> list[Comparison]:
    """A comparison for each table that has rows or should, and one of what is there twice in all of them."""
    used = [count for count in counts if count.records or count.rows]
    return [
        *(
            Comparison(f"{sink.app}: rows + dead letters of {each.topic}", each.rows + each.dead_letters, each.records)
            for each in used
        ),
        Comparison(
            f"{sink.app}: rows that are there twice",
            sum(each.rows - each.places for each in counts),
            0,
            f"in {len(counts)} tables, {len(counts) - len(used)} of them empty",
        ),
    ]


def count_tables(kafka: KafkaSettings, sink: ArchiveSink, topics: Iterable[str], archive: Path) -> list[TableCount]:
    """The counts of the table of each topic; one without a table has no rows. Raises BrokerUnavailable."""
    dead = Counter[str]()
    each_committed(
        kafka, kafka.topics.dead_letters(sink.app), lambda record: dead.update([header(record, SOURCE_TOPIC)])
    )
    return [
        TableCount(topic, *rows_of(archive / topic), dead[topic], each_committed(kafka, topic, lambda record: None))
        for topic in topics
    ]


def rows_of(folder: Path) -> tuple[int, int]:
    """The rows of a Delta table and the different places among them; none if there is no table."""
    import duckdb
    from deltalake import DeltaTable

    if not DeltaTable.is_deltatable(str(folder)) or not (files := DeltaTable(folder).file_uris()):
        return 0, 0
    asked = 'SELECT count(*), count(DISTINCT ("partition", "offset")) FROM read_parquet(?, hive_partitioning = false)'
    with duckdb.connect(":memory:") as connection:
        found = connection.execute(asked, [files]).fetchall()
    return int(found[0][0]), int(found[0][1])
