"""Databases as sources: SQLite here, PostgreSQL with the loader on a broker."""

from pathlib import Path

import pytest

from lozenge.errors import ConfigError
from lozenge_upstream.tables.database import DatabaseRows
from lozenge_upstream.tables.source_rows import PART_ROWS, SourceUnavailable, UnusableSource
from tests.tables import in_sqlite

QUERY = "select country, most from limits"


def test_a_query_is_read_in_parts_and_its_columns_by_name(tmp_path: Path) -> None:
    url = in_sqlite(tmp_path / "x.db", ((f"c{n}", n, None) for n in range(PART_ROWS + 1)))
    source = DatabaseRows("limits", url, QUERY)
    parts = [*source.parts(["MOST", "country"])]
    assert [len(part[0]) for part in parts] == [PART_ROWS, 1]
    assert [part[0][0] for part in parts] == [0, PART_ROWS]
    with pytest.raises(UnusableSource, match="it has no column since; its columns are country, most"):
        [*source.parts(["since"])]


@pytest.mark.parametrize(("query", "why"), [("select x from limits", "no such column"), ("selec", "syntax error")])
def test_what_the_database_says_is_passed_on(tmp_path: Path, query: str, why: str) -> None:
    url = in_sqlite(tmp_path / "x.db", [])
    with pytest.raises(SourceUnavailable, match=why):
        [*DatabaseRows("limits", url, query).parts(["x"])]


def test_a_database_that_is_not_there_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="there is no file"):
        [*DatabaseRows("limits", f"sqlite:///{tmp_path}/x.db", QUERY).parts(["most"])]
    assert not [*tmp_path.iterdir()]


def test_a_server_that_is_away_is_named_without_its_login() -> None:
    source = DatabaseRows("limits", "postgresql+psycopg://app:secret@127.0.0.1:1/x", QUERY)
    assert source.name == "postgresql+psycopg://127.0.0.1:1/x"
    with pytest.raises(SourceUnavailable, match=r"127\.0\.0\.1") as refused:
        [*source.parts(["most"])]
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("address", ["nothing://x/y", "oracle+oracledb://x/y", "://"])
def test_an_address_without_a_driver_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="opening the source of the table limits"):
        DatabaseRows("limits", address, QUERY)
