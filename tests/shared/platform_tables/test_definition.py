"""What a table of the platform may declare, and that every problem is named at once."""

from datetime import timedelta
from pathlib import Path

import pytest

from lozenge.errors import ConfigError
from lozenge.platform_tables.definition import PlatformTable
from lozenge.platform_tables.project import read_table
from tests.tables import DATABASE, table_folder


def declared(folder: Path, text: str) -> PlatformTable:
    return read_table(table_folder(folder, "limits", text))


def test_what_is_not_declared_has_a_default_and_a_password_is_of_the_environment(tmp_path: Path) -> None:
    table = declared(tmp_path, DATABASE.format(source="postgresql+psycopg://app:${DB_PASSWORD}@db/app"))
    assert (table.app, table.every, table.rows) == ("table-limits", timedelta(minutes=5), 100_000)
    assert table.required == {"country", "most"}
    assert table.address({"DB_PASSWORD": "x"}) == "postgresql+psycopg://app:x@db/app"
    with pytest.raises(ConfigError, match="DB_PASSWORD is not set"):
        table.address({})


def test_every_problem_is_named_at_once_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        declared(
            tmp_path,
            'title = " "\nowner = "x"\nsource = "postgresql://app:secret@db/app"\npath = "limits"\n'
            'columns = "country string, more array<string>"\nkey = ["country", "country"]\nevery = "0s"\nrows = 0\n'
            "shrinks_to = 2\nfile = 1\n",
        )
    found = "\n".join(refused.value.problems)
    assert "secret" not in found
    for place in (
        "line 1: title",
        "line 3: source: it has a password",
        "line 5: columns: columns: no table of the platform holds the type of more",
        "line 6: key: name each column that identifies a row, once",
        "line 7: every",
        "line 8: rows",
        "line 9: shrinks_to",
        "line 10: file",
    ):
        assert place in found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('path = "/data/limits"\nquery = "select 1"\n', "query: a database has a source and a query"),
        ('source = "sqlite:////x.db"\n', "query: a database has a source and a query"),
        ('source = "sqlite:///x.db"\nquery = "select 1"\n', "write the whole path of the file"),
        ('source = "sqlite:////x.db"\nquery = "select 1"\npath = "/data"\n', "name one of source and path"),
        ("", "name one of source and path"),
        ('path = "limits"\n', "write the whole path"),
        ('path = "/data"\nname = "x"\n', "name: the name of the folder is that of the table"),
        ('source = "db"\nquery = "select 1"\n', "it is no URL of SQLAlchemy"),
    ],
)
def test_a_table_has_one_source(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        declared(tmp_path, f'title = "T"\nowner = "x"\ncolumns = "a string"\nkey = ["a"]\n{text}')


def test_a_key_is_made_of_columns(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no column b; there are a"):
        declared(tmp_path, 'title = "T"\nowner = "x"\npath = "/d"\ncolumns = "a string"\nkey = ["b"]\n')
