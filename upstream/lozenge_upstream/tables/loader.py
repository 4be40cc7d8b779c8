"""Looks at the source of a table, and writes what has changed into its topic: a good version as a whole, or nothing.

**Guarantee: a version is in the topic as one transaction, after all of it was read and validated.** A loader that is
killed has written the last good version and nothing more. Of two loaders the later one fences the earlier.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import msgspec

from lozenge.contracts.record import Record
from lozenge.contracts.topics import platform_table
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics, partitions, topic_id
from lozenge.kafka.versioned_topics import read_records
from lozenge.kafka.writers import TransactionalWriter
from lozenge.platform_tables.definition import PlatformTable
from lozenge.platform_tables.state import TableState
from lozenge.process.last_good import Contents, refusals
from lozenge.protocol.table_records import COLUMNS_KEY, TableColumns, columns_of, decode, decoded_row, rows_of
from lozenge_upstream.tables.database import DatabaseRows
from lozenge_upstream.tables.difference import NewVersion, TableChange, known_of
from lozenge_upstream.tables.lake import lake_rows
from lozenge_upstream.tables.source_rows import SourceUnavailable, TableSource, UnusableSource

TRANSACTION_SECONDS = 300.0
"""So long a transaction may last: a million rows are one."""


@dataclass(frozen=True)
class Look:
    """What one look at a source has found: `problems` say why its version is not in force, if it is not.

    `rows` were read; `change` is what the version changes in the topic.
    """

    state: TableState
    rows: int = 0
    problems: tuple[str, ...] = ()
    change: TableChange = field(default_factory=lambda: TableChange({}, {}, ()))


@dataclass(frozen=True)
class LoadedRows:
    """What the topic has: its columns, the digests of its rows by key, and what was found in the last good version."""

    columns: TableColumns | None = None
    digests: dict[str, bytes] = field(default_factory=dict)
    last: Contents | None = None


def loaded_rows(kafka: KafkaSettings, topic: str) -> LoadedRows:
    """What the topic has, if it is there; raises BrokerUnavailable."""
    if topic not in partitions(kafka):
        return LoadedRows()
    _, records = read_records(kafka, topic, decode, settled=True)
    rows, values = rows_of(records), dict[str, int]()
    for row in rows.values():
        for name, text in decoded_row(row).items():
            values[name] = values.get(name, 0) + (text is not None)
    columns = columns_of(records)
    last = Contents("", len(rows), values=values) if columns is not None else None
    return LoadedRows(columns, known_of(rows), last)


def source_of(table: PlatformTable) -> TableSource:
    """Where its rows are; raises ConfigError for an address that is none."""
    address = table.address()
    return DatabaseRows(table.name, address, table.query) if table.source else lake_rows(address)


def looked(table: PlatformTable, source: TableSource, loaded: LoadedRows) -> tuple[Look, LoadedRows]:
    """Reads the source as a whole, and what is loaded once its version is written; writes nothing."""
    new = NewVersion(table, loaded.digests)
    columns = TableColumns(table.columns, table.key)
    try:
        with closing(source.parts(new.columns)) as parts:
            for part in parts:
                new.add(part)
                if new.is_too_long:
                    break
    except SourceUnavailable as error:
        return Look(TableState.UNREACHABLE, problems=(error.message,)), loaded
    except UnusableSource as error:
        return Look(TableState.REFUSED, problems=(str(error),)), loaded
    except UnicodeError as error:
        return Look(TableState.REFUSED, problems=(f"it has a text that is not UTF-8: {error}",)), loaded
    found = new.contents()
    if problems := refusals(found, loaded.last, table.bounds):
        return Look(TableState.REFUSED, found.entries, problems), loaded
    last = msgspec.structs.replace(found, shape={})  # the shape is declared: a person has changed it
    return Look(TableState.GOOD, found.entries, change=new.change()), LoadedRows(columns, new.seen, last)


class TableLoader:
    """Loads one table. It holds a digest of each row, and during a look the rows that have changed."""

    def __init__(self, table: PlatformTable, kafka: KafkaSettings) -> None:
        """Raises ConfigError for an address that is none."""
        self._table, self._kafka = table, kafka
        self._source = source_of(table)
        self._topic = platform_table(kafka.topics, table.name)
        self._writer = TransactionalWriter(kafka, f"lozenge-table-{table.name}", seconds=TRANSACTION_SECONDS)
        self._loaded = LoadedRows()
        self._topic_id = ""
        self._seen: tuple[str, Look] | None = None
        """The last version of a source that knows versions, and what was found in it."""

    @property
    def rows(self) -> int:
        """How many rows the last good version has."""
        return self._loaded.last.entries if self._loaded.last is not None else 0

    def begin(self) -> None:
        """Fences an earlier loader, and reads what it has left; raises BrokerUnavailable or TopicError."""
        ensure_topics(self._kafka, [self._topic])
        self._writer.fence()
        self._read_topic()

    def look(self) -> Look:
        """Reads the source, and writes what a good version changes.

        Raises Fenced if another loader has begun, BrokerUnavailable.
        """
        if topic_id(self._kafka, self._topic.name) != self._topic_id:
            self._read_topic()  # somebody has made it again
        try:
            version = self._source.version()
        except SourceUnavailable as error:
            return Look(TableState.UNREACHABLE, problems=(error.message,))
        if version is not None and self._seen is not None and self._seen[0] == version:
            return self._seen[1]
        found, loaded = looked(self._table, self._source, self._loaded)
        if found.state is TableState.GOOD:
            if records := [*self._records(found.change)]:
                self._writer.write(records)
            self._loaded = loaded
        quiet = Look(found.state, found.rows, found.problems)
        reached = found.state is not TableState.UNREACHABLE
        self._seen = (version, quiet) if version is not None and reached else None
        return found

    def _read_topic(self) -> None:
        self._topic_id = topic_id(self._kafka, self._topic.name)
        self._loaded, self._seen = loaded_rows(self._kafka, self._topic.name), None

    def _records(self, change: TableChange) -> Iterator[Record]:
        topic, columns = self._topic.name, TableColumns(self._table.columns, self._table.key)
        if self._loaded.columns != columns:
            yield Record(topic, 0, COLUMNS_KEY.encode(), columns.encoded())
        for key, row in (*change.added.items(), *change.changed.items()):
            yield Record(topic, 0, key.encode(), row)
        for key in change.removed:
            yield Record(topic, 0, key.encode(), None)
