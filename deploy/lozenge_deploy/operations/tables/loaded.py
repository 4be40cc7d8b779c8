"""What the topics of tables of the platform hold."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from lozenge.contracts.topic_patterns import name_of_table
from lozenge.contracts.topics import platform_table
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.versioned_topics import read_records
from lozenge.protocol.table_records import TableColumns, columns_of, decode, decoded_row, rows_of, version


@dataclass(frozen=True)
class LoadedTable:
    """The version that is in force, its columns, and its rows as they are in their records; None before the first."""

    version: str
    columns: TableColumns
    rows: Mapping[str, bytes]

    def first(self, count: int) -> list[dict[str, str | None]]:
        """The first rows in the order of their keys, as texts by column."""
        return [decoded_row(row) for row in islice(self.rows.values(), count)]


def names(kafka: KafkaSettings) -> list[str]:
    """The tables of this platform that have a topic, in order; raises BrokerUnavailable."""
    return sorted(name for topic in partitions(kafka) if (name := name_of_table(kafka.topics, topic)) is not None)


def loaded_table(kafka: KafkaSettings, name: str) -> LoadedTable | None:
    """What is loaded of a table; None if nothing is. Raises BrokerUnavailable."""
    topic = platform_table(kafka.topics, name).name
    if topic not in partitions(kafka):
        return None
    changed, records = read_records(kafka, topic, decode)
    columns = columns_of(records)
    return LoadedTable(version(changed, records), columns, rows_of(records)) if columns is not None else None
