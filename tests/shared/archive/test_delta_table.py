from datetime import timedelta
from pathlib import Path
from threading import Barrier, Thread

import duckdb
import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError

from lozenge.archive.columns import PARTITIONED_BY, columns_of, rows_of
from lozenge.archive.data_files import written
from lozenge.archive.delta_table import ArchiveTable, ArchiveUnwritable, days_before
from lozenge.errors import ConfigError, Fenced, SchemaError
from tests.archive_rows import BUCKETS, COLUMNS, DAY, RECORD, TOPIC, positions, positions_by_file, rows, table_in
from tests.full_disk import files_of_at_most


def commit(table: DeltaTable, app: str, version: int) -> None:
    properties = CommitProperties(app_transactions=[Transaction(app, version)], max_commit_retries=3)
    table.create_write_transaction([], "append", table.schema(), PARTITIONED_BY, commit_properties=properties)


# what is relied on of `deltalake`


def test_a_second_commit_of_an_app_by_a_stale_handle_is_refused(tmp_path: Path) -> None:
    table_in(tmp_path)
    first, stale, other = (DeltaTable(tmp_path) for _ in range(3))
    commit(first, "app", 10)
    for version in (10, 5, 11):
        with pytest.raises(CommitFailedError, match="Concurrent transaction"):
            commit(stale, "app", version)
    commit(other, "another", 1)
    assert DeltaTable(tmp_path).transaction_version("app") == 10


def test_an_app_that_knows_the_newest_version_is_not_refused_so_writers_compare_it_themselves(tmp_path: Path) -> None:
    table_in(tmp_path)
    commit(DeltaTable(tmp_path), "app", 10)
    commit(DeltaTable(tmp_path), "app", 5)
    assert DeltaTable(tmp_path).transaction_version("app") == 5


def test_duckdb_and_arrow_read_the_files_that_a_version_names(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    table.append(rows(0, range(10)), {}, {0: 10})
    found = duckdb.sql(f"SELECT count(*), max(day), max(bucket) FROM read_parquet({DeltaTable(tmp_path).file_uris()})")
    assert found is not None
    assert found.fetchall() == [(10, DAY, 1)]
    assert DeltaTable(tmp_path).to_pyarrow_dataset().count_rows() == 10


# commits


def test_rows_and_ends_become_visible_together(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    assert table.ends(range(3)) == {}
    table.append(rows(0, range(10)), {}, {0: 12})
    table.append(pa.concat_tables([rows(0, range(12, 20)), rows(2, range(5))]), {0: 12}, {0: 20, 2: 5})
    assert table.ends(range(3)) == ArchiveTable.existing(tmp_path).ends(range(3)) == {0: 20, 2: 5}
    assert positions(table) == [*((0, o) for o in [*range(10), *range(12, 20)]), *((2, o) for o in range(5))]


def test_ends_move_without_rows(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    table.append(COLUMNS.empty_table(), {}, {0: 7})
    assert ArchiveTable.existing(tmp_path).ends([0]) == {0: 7}
    assert positions(table) == []


def test_files_that_no_commit_names_are_not_there_for_a_reader(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    written(tmp_path, rows(0, range(10)))
    assert positions(table) == []


@pytest.mark.parametrize("end", [10, 4, 30])
def test_a_writer_that_another_one_has_overtaken_is_fenced_and_changes_nothing(tmp_path: Path, end: int) -> None:
    zombie, successor = table_in(tmp_path), table_in(tmp_path)
    successor.append(rows(0, range(10)), {}, {0: 10})
    with pytest.raises(Fenced, match="archived to 0:10"):
        zombie.append(rows(0, range(end)), {}, {0: end})
    assert positions(successor) == [(0, offset) for offset in range(10)]
    zombie.append(rows(1, range(3)), {}, {1: 3})  # nobody has archived that partition


def test_of_two_writers_at_one_moment_one_is_fenced(tmp_path: Path) -> None:
    table_in(tmp_path)
    outcomes: list[str] = []
    together = Barrier(2)

    def archive(writer: ArchiveTable) -> None:
        together.wait(30)
        try:
            writer.append(rows(0, range(500)), {}, {0: 500})
            outcomes.append("committed")
        except Fenced:
            outcomes.append("fenced")

    threads = [Thread(target=archive, args=(table_in(tmp_path),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(outcomes) == ["committed", "fenced"]
    assert positions(table_in(tmp_path)) == [(0, offset) for offset in range(500)]


def test_rows_of_a_file_are_in_the_order_of_the_topic(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    mixed = pa.concat_tables([rows(1, range(0, 40, 2)), rows(0, range(9, -1, -1)), rows(1, range(1, 40, 2))])
    table.append(rows_of(mixed, COLUMNS), {}, {0: 10, 1: 40})
    files = positions_by_file(table)
    assert len(files) == BUCKETS
    assert all(file == sorted(file) for file in files)


# columns


def test_a_table_gains_columns_and_fields_within_and_older_rows_stay(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    table.append(rows(0, range(4)), {}, {0: 4})
    raw = {"type": "record", "name": "Raw", "fields": [{"name": n, "type": "string"} for n in ("source", "topic")]}
    grown = columns_of({"fields": [RECORD["fields"][0], {"name": "raw", "type": raw}, {"name": "n", "type": "int"}]})
    older = table_in(tmp_path)
    table.append(rows(0, range(4, 6), columns=grown, n=1), {0: 4}, {0: 6})
    older.append(rows(0, range(6, 8)), {0: 6}, {0: 8})
    assert len(positions(table)) == 8
    assert {"n", "raw"} < set(older.columns.names)
    assert [f.name for f in older.columns.field("raw").type] == ["source", "topic"]


def test_a_column_of_another_type_is_refused_by_its_name(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    other = columns_of({"fields": [{"name": "card_id", "type": "long"}]})
    with pytest.raises(SchemaError, match="card_id is string in the table and int64 in the records"):
        table.append(other.empty_table(), {}, {0: 1})
    with pytest.raises(SchemaError):
        table_in(tmp_path, other)
    assert table.ends([0]) == {}


def test_a_table_keeps_its_topic_and_its_number_of_buckets(tmp_path: Path) -> None:
    table_in(tmp_path)
    with pytest.raises(ConfigError, match="2 buckets, not"):
        ArchiveTable.open(tmp_path, TOPIC, "events_auth", COLUMNS, 4)
    with pytest.raises(ConfigError, match="opening the table"):
        ArchiveTable.existing(tmp_path / "nothing")


# rewriting files


def test_rows_are_appended_while_files_are_rewritten_and_none_is_lost(tmp_path: Path) -> None:
    writer, compactor = table_in(tmp_path), table_in(tmp_path)
    writer.append(rows(0, range(10)), {}, {0: 10})
    compactor.refresh()
    old = compactor.files()
    new = written(tmp_path, rows(0, range(10)))
    writer.append(rows(0, range(10, 20)), {0: 10}, {0: 20})
    assert compactor.replace(old, new)
    writer.append(rows(0, range(20, 30)), {0: 20}, {0: 30})
    assert positions(writer) == [(0, offset) for offset in range(30)]


def test_of_two_that_rewrite_the_same_files_only_the_first_does(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    table.append(rows(0, range(10)), {}, {0: 10})
    first, second = table_in(tmp_path), table_in(tmp_path)
    old = first.files()
    assert first.replace(old, written(tmp_path, rows(0, range(10))))
    assert not second.replace(old, written(tmp_path, rows(0, range(10))))
    second.refresh()
    assert not second.replace(old, written(tmp_path, rows(0, range(10))))
    assert positions(table) == [(0, offset) for offset in range(10)]


def test_days_are_forgotten_and_ends_stay(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    table.append(rows(0, range(10)), {}, {0: 10})
    table.append(rows(0, range(10, 14), day=DAY + timedelta(days=1)), {0: 10}, {0: 14})
    old = days_before(table.files(), DAY + timedelta(days=1))
    assert table.replace(old, [])
    assert positions(table) == [(0, offset) for offset in range(10, 14)]
    assert table.ends([0]) == {0: 14}


def test_files_that_no_version_has_are_deleted_once_they_are_old(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    table.append(rows(0, range(10)), {}, {0: 10})
    written(tmp_path, rows(0, range(10)))
    assert table.vacuum() == 0
    assert table.vacuum(timedelta()) == BUCKETS
    assert positions(table) == [(0, offset) for offset in range(10)]


def files_in(folder: Path) -> set[Path]:
    return {file for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("most", [0, 1_000, 8_000], ids=["no file", "a part of the first file", "all but the log"])
def test_a_full_disk_takes_no_part_of_a_commit_and_the_same_commit_succeeds_later(tmp_path: Path, most: int) -> None:
    table = table_in(tmp_path)
    table.append(rows(0, range(10)), {}, {0: 10})
    before = files_in(tmp_path)
    many = pa.concat_tables(rows(0, range(at, at + 2), day=DAY + timedelta(days=at)) for at in range(10, 50, 2))
    with files_of_at_most(most), pytest.raises(ArchiveUnwritable, match="File too large") as raised:
        table.append(many, {0: 10}, {0: 50})
    assert "free space" in raised.value.hint
    assert files_in(tmp_path) == before
    assert table.ends([0]) == {0: 10}
    table.append(many, {0: 10}, {0: 50})
    assert positions(table) == [(0, offset) for offset in range(50)]


def test_a_commit_whose_checkpoint_does_not_fit_is_there(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    for end in range(1, 62):  # version 60 has a checkpoint
        with files_of_at_most(6_000):
            table.append(rows(0, [end - 1]), {0: end - 1} if end > 1 else {}, {0: end})
    assert positions(table) == [(0, offset) for offset in range(61)]


def test_a_table_that_cannot_be_created_can_be_later(tmp_path: Path) -> None:
    with files_of_at_most(0), pytest.raises(ArchiveUnwritable, match=TOPIC):
        table_in(tmp_path / "table")
    assert table_in(tmp_path / "table").ends([0]) == {}
