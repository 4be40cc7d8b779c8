"""The rows of a source's files compared with the records and events that came of them.

Files are read by pyarrow, records by kafka-python: no code of the file source reads either.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow.parquet as pq

from lozenge.contracts import ids
from lozenge.file_sources.definition import FileSource
from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.demo.committed_records import each_committed, header
from lozenge_deploy.demo.feed.formats import RAW_JSON, STREAM
from lozenge_deploy.demo.feed.payment_files import SUFFIX
from lozenge_deploy.demo.reconciliation import SOURCE, Comparison

_ROW = "lozenge-file-row"
"""The header of a record with its file and row, such as `a.parquet:17`."""


class PaymentRow(NamedTuple):
    """A row of a file, and the transaction that it has."""

    place: str
    txn_id: str


class FileCount(NamedTuple):
    """The `rows` of all files, and how many of them have a record, `copied`, and an event, `events`.

    `repeats` are records of a row that has one already, `foreign` those of a row that no file has.
    """

    files: int
    rows: int
    copied: int
    repeats: int
    foreign: int
    events: int
    dead_letters: int


def file_comparisons(source: FileSource, count: FileCount) -> list[Comparison]:
    """The comparisons of one source."""
    app = source.app
    return [
        Comparison(f"{app}: rows with a record in {source.topic}", count.copied, count.rows, f"in {count.files} files"),
        Comparison(f"{app}: records of a row that has one", count.repeats, 0),
        Comparison(f"{app}: records that no file has", count.foreign, 0),
        Comparison(f"{app}: rows with an event", count.events, count.rows),
        Comparison(f"{app}: dead letters", count.dead_letters, 0),
    ]


def count_rows(kafka: KafkaSettings, source: FileSource) -> FileCount:
    """The counts of a source of payments; raises BrokerUnavailable."""
    written = {file.name: rows_of(file) for file in files_in(Path(source.path))}
    copied = list[PaymentRow]()
    events = set[str]()

    def take(record: Any) -> None:
        if place := header(record, _ROW):
            copied.append(PaymentRow(place, msgspec.json.decode(record.value)["txn_id"]))

    each_committed(kafka, kafka.topics.prefixed(RAW_JSON), take)
    each_committed(kafka, kafka.topics.events(STREAM), lambda record: events.add(header(record, "ce_id")))
    dead_letters = each_committed(kafka, kafka.topics.dead_letters(source.app), lambda record: None)
    return counted(written, copied, events, dead_letters)


def files_in(folder: Path) -> list[Path]:
    """The files of payments that are complete."""
    return sorted(folder.glob(f"[!.]*{SUFFIX}"))


def rows_of(file: Path) -> list[PaymentRow]:
    """The rows of a file."""
    ids_of_rows = pq.read_table(file, columns=["txn_id"])["txn_id"].to_pylist()
    return [PaymentRow(f"{file.name}:{number}", str(txn_id)) for number, txn_id in enumerate(ids_of_rows)]


def counted(
    written: Mapping[str, Iterable[PaymentRow]], copied: Iterable[PaymentRow], events: set[str], dead_letters: int
) -> FileCount:
    """Compares the rows that were `written`, by file, with those that were `copied`; `events` are the ids of events."""
    rows = {row for each in written.values() for row in each}
    records = Counter(copied)
    there = rows & records.keys()
    return FileCount(
        files=len(written),
        rows=len(rows),
        copied=len(there),
        repeats=sum(records[row] - 1 for row in there),
        foreign=sum(number for row, number in records.items() if row not in rows),
        events=sum(ids.event_id(SOURCE, row.txn_id) in events for row in rows),
        dead_letters=dead_letters,
    )
