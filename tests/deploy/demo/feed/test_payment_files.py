"""Payments in files: as records of AUTH-JSON, of cards that no record has, in files that are complete."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lozenge.errors import UsageError
from lozenge_deploy.demo.feed import Generator
from lozenge_deploy.demo.feed.payment_files import COLUMNS, EVERY, PaymentFiles
from lozenge_deploy.demo.feed.schedule import micros, steady

START = datetime(2026, 11, 20, 19, tzinfo=UTC)
RATE, SECONDS = 100, 12


def test_each_payment_is_a_row_of_one_file_and_its_card_is_in_no_record(tmp_path: Path) -> None:
    feed = Generator(START - timedelta(days=1), malformed_rate=0)
    files = PaymentFiles(tmp_path / "new", feed.in_file)
    records = [json.loads(raw.value) for raw in feed.live(files.alongside(steady(START, RATE, SECONDS)), 1e6)]
    files.close()
    tables = [pq.read_table(file) for file in sorted((tmp_path / "new").iterdir())]
    rows = [row for table in tables for row in table.to_pylist()]
    assert {tuple(table.column_names) for table in tables} == {tuple(COLUMNS)}
    assert len(tables) == 3
    assert len(rows) == feed.written.rows == RATE * SECONDS // EVERY
    assert feed.written.sent == len(records) == RATE * SECONDS
    assert len({row["txn_id"] for row in [*rows, *records]}) == len(rows) + len(records)
    for key in ("pan", "account"):
        assert not {row[key] for row in rows} & {record[key] for record in records}
    assert [row["ts"] for row in rows] == sorted(row["ts"] for row in rows)
    given = [{name: value for name, value in row.items() if value is not None} for row in rows]
    assert {*map(frozenset, given)} == {*map(frozenset, records)}


def test_a_card_waits_before_it_pays_again(tmp_path: Path) -> None:
    feed = Generator(START - timedelta(days=1))
    pans = [json.loads(feed.in_file(micros(START + timedelta(seconds=n))).value)["pan"] for n in range(700)]
    last: dict[str, int] = {}
    for second, pan in enumerate(pans):
        assert second - last.get(pan, -1000) > 300
        last[pan] = second
    assert len(last) < len(pans)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    files = PaymentFiles(tmp_path / "file", Generator(START).in_file)
    with pytest.raises(UsageError, match=f"writing a file of payments in {tmp_path / 'file'}"):
        [*files.alongside(steady(START, RATE, SECONDS))]


def test_no_payment_makes_no_file(tmp_path: Path) -> None:
    PaymentFiles(tmp_path, Generator(START).in_file).close()
    assert [*tmp_path.iterdir()] == []
