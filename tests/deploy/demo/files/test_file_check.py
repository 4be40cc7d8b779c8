"""The rows of files compared with records and events: what is lost, there twice or foreign is seen."""

from typing import Any

import pytest

from lozenge.contracts import ids
from lozenge.file_sources.definition import FileSource, Format
from lozenge_deploy.demo.files.file_check import FileCount, PaymentRow, counted, file_comparisons
from lozenge_deploy.demo.reconciliation import SOURCE

A, B, C = PaymentRow("1.parquet:0", "t1"), PaymentRow("1.parquet:1", "t2"), PaymentRow("2.parquet:0", "t3")
WRITTEN = {"1.parquet": [A, B], "2.parquet": [C]}
EVENTS = {ids.event_id(SOURCE, row.txn_id) for row in (A, B, C)}
NAMES = {
    "lost": "files-payments: rows with a record in AUTH-JSON",
    "twice": "files-payments: records of a row that has one",
    "foreign": "files-payments: records that no file has",
    "no event": "files-payments: rows with an event",
    "bad": "files-payments: dead letters",
}


def source() -> FileSource:
    named: dict[str, Any] = {"name": "payments", "title": "t", "owner": "o", "topic": "AUTH-JSON", "path": "/data"}
    return FileSource(**named, format=Format.PARQUET)


def wrong(count: FileCount) -> set[str]:
    return {each.name for each in file_comparisons(source(), count) if not each.ok}


def test_rows_that_have_a_record_and_an_event_each_are_right() -> None:
    count = counted(WRITTEN, [C, A, B], {*EVENTS, "of another record"}, 0)
    assert (count.files, count.rows, count.copied) == (2, 3, 3)
    assert wrong(count) == set()


@pytest.mark.parametrize(
    ("copied", "events", "dead_letters", "what"),
    [
        ([A, B], EVENTS, 0, {"lost"}),
        ([A, B, C, C], EVENTS, 0, {"twice"}),
        ([A, B, C, PaymentRow("1.parquet:2", "t9")], EVENTS, 0, {"foreign"}),
        ([A, B, PaymentRow(C.place, "t9")], EVENTS, 0, {"lost", "foreign"}),
        ([A, B, C], EVENTS - {ids.event_id(SOURCE, "t2")}, 0, {"no event"}),
        ([A, B, C], EVENTS, 1, {"bad"}),
    ],
)
def test_a_row_that_is_lost_repeated_changed_or_refused_is_seen(
    copied: list[PaymentRow], events: set[str], dead_letters: int, what: set[str]
) -> None:
    assert wrong(counted(WRITTEN, copied, events, dead_letters)) == {NAMES[each] for each in what}
