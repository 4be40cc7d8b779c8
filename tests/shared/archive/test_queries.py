from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lozenge.archive.delta_table import ArchiveTable
from lozenge.archive.queries import ArchiveQueries, table_named, tables_in, whole_days
from lozenge.errors import UsageError
from tests.archive_rows import BUCKETS, COLUMNS, DAY, rows, table_in


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    table_in(tmp_path / "pay.canonical.auth.v1").append(rows(0, range(10)), {}, {0: 10})
    for detector in ("one", "two"):
        topic = f"pay.alerts.{detector}.v1"
        table = ArchiveTable.open(tmp_path / topic, topic, f"alerts_{detector}", COLUMNS, BUCKETS)
        if detector == "one":
            table.append(rows(1, range(3)), {}, {1: 3})
    return tmp_path


def asked(archive: Path, query: str) -> list[dict[str, object]]:
    with ArchiveQueries(tables_in(archive)) as queries:
        return list(queries.read(query).read_all().to_pylist())


def test_each_table_is_a_view_and_tables_of_a_kind_are_one_together(archive: Path) -> None:
    assert asked(archive, "SELECT count(*) AS n, max(day) AS d FROM events_auth") == [{"n": 10, "d": DAY}]
    assert asked(archive, "SELECT count(*) AS n FROM alerts") == asked(archive, "SELECT 3::BIGINT AS n")
    assert asked(archive, "SELECT raw.source AS s FROM alerts LIMIT 1;") == [{"s": "test"}]


def test_a_table_without_rows_has_its_columns(archive: Path) -> None:
    assert asked(archive, "SELECT card_id FROM alerts_two") == []


def test_offsets_of_a_partition_come_in_order(archive: Path) -> None:
    table = table_named(archive, "events_auth")
    with ArchiveQueries([table]) as queries:
        assert list(queries.offsets(table, 0)) == list(range(10))
        assert list(queries.offsets(table, 3)) == []


@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE x (i INT)",
        "COPY (SELECT 1) TO 'x.csv'",
        "SELECT 1; SELECT 2",
        "ATTACH 'x.db'",
        "",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM nothing",
        "SELEC",
    ],
)
def test_what_is_no_query_on_the_archive_is_refused_with_the_reason(archive: Path, query: str) -> None:
    with pytest.raises(UsageError, match="running SQL") as refused:
        asked(archive, query)
    assert refused.value.hint


@pytest.mark.parametrize("name", ["out.parquet", "out.csv"])
def test_a_result_is_written_as_a_file(archive: Path, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    with ArchiveQueries(tables_in(archive), written=file) as queries:
        assert (
            queries.export('SELECT "offset", card_id FROM events_auth ORDER BY "offset" -- all', file, file.suffix[1:])
            == 10
        )
    if file.suffix == ".parquet":
        assert pq.read_table(file)["offset"].to_pylist() == list(range(10))
    else:
        assert file.read_text().splitlines()[:2] == ["offset,card_id", "0,card-0"]


def test_whole_days_of_a_table_come_in_the_order_of_the_topic(archive: Path) -> None:
    table = table_named(archive, "pay.canonical.auth.v1")
    table.append(rows(0, range(10, 14), day=DAY + timedelta(days=1)), {0: 10}, {0: 14})
    for first, last, offsets in (
        (None, None, range(14)),
        (DAY, DAY, range(10)),
        (DAY + timedelta(days=1), None, range(10, 14)),
        (None, DAY - timedelta(days=1), range(0)),
    ):
        found = asked(archive, whole_days(table, first, last))
        assert [row["offset"] for row in found] == list(offsets)


def test_no_other_file_is_written(archive: Path, tmp_path: Path) -> None:
    with (
        ArchiveQueries(tables_in(archive), written=tmp_path / "one.csv") as queries,
        pytest.raises(UsageError, match="Cannot access"),
    ):
        queries.export("SELECT 1", tmp_path / "two.csv", "csv")


def test_a_folder_without_tables_and_an_unknown_table_are_named(archive: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no tables"):
        tables_in(tmp_path / "nothing")
    with pytest.raises(UsageError, match=r"the table alert in .*: there is none") as missing:
        table_named(archive, "alert")
    assert "events_auth" in missing.value.hint
