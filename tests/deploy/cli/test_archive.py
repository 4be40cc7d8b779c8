"""Commands on an archive: what they print, and what they refuse."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.archive_rows import rows, table_in
from tests.deploy.command import invoke


def asked(tables: Path, *arguments: str) -> str:
    """What a command prints that succeeds."""
    done = invoke(*arguments, "--archive", str(tables), cwd=tables)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(tables: Path, *arguments: str) -> str:
    """What a command says that is refused."""
    done = invoke(*arguments, "--archive", str(tables), cwd=tables)
    assert done.returncode == 2, done.stderr
    return done.stderr


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    table_in(tmp_path / "archive" / "pay.canonical.auth.v1").append(rows(0, range(10)), {}, {0: 10})
    return tmp_path / "archive"


def test_tables_are_listed_with_their_rows_files_and_days(tables: Path) -> None:
    [row] = json.loads(asked(tables, "archive", "ls", "-o", "json"))
    assert (row["table"], row["rows"], row["files"], row["from"]) == ("events_auth", 10, 2, "2026-03-01")


@pytest.mark.parametrize(
    ("output", "printed"),
    [
        ("table", ["n", "10"]),
        ("csv", ["n", "10"]),
        ("json", ["[", '"n": 10', "]"]),
    ],
)
def test_a_query_is_printed_as_requested(tables: Path, output: str, printed: list[str]) -> None:
    text = asked(tables, "sql", "select count(*) as n from events", "-o", output)
    assert all(part in text for part in printed)


def test_a_card_number_in_a_result_is_masked(tables: Path) -> None:
    for output in ("table", "csv", "json"):
        text = asked(tables, "sql", "select '4111111111111111' as n", "-o", output)
        assert "4111111111111111" not in text


def test_results_and_tables_are_written_as_files(tables: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one.csv", tmp_path / "two.parquet"
    query = "select card_id from events_auth"
    asked(tables, "sql", query, "-o", "csv", "--file", str(one))
    assert len(one.read_text().splitlines()) == 11
    said = asked(tables, "export", "events_auth", str(two), "--from", "2026-03-01")
    assert "10 rows of events_auth" in said
    assert pq.read_table(two)["offset"].to_pylist() == list(range(10))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["select 1", "-o", "parquet"], "Parquet is no text"),
        (["select 1", "--file", "x.csv"], "table is printed"),
        (["drop table x"], "no query"),
    ],
)
def test_what_cannot_be_asked_is_refused(tables: Path, arguments: list[str], problem: str) -> None:
    assert problem in refused(tables, "sql", *arguments)


def test_an_export_names_what_is_wrong(tables: Path) -> None:
    for arguments, problem in (
        (["events_auth", "x.txt"], "is .parquet or .csv"),
        (["events_auth", "x.csv", "--from", "today"], "today is no day"),
        (["nothing", "x.csv"], "the table nothing"),
    ):
        assert problem in refused(tables, "export", *arguments)
