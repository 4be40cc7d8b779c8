"""Tables of the platform for tests: their folders, and databases with rows."""

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from lozenge.platform_tables.definition import PlatformTable
from lozenge.platform_tables.project import DECLARATION, TABLES

DATABASE = """title = "Limits"
owner = "risk"
source = "{source}"
query = "select country, most, since from limits"
columns = "country string, most decimal(18,4) not null, since timestamp"
key = ["country"]
"""
Row = tuple[object, ...]


def table_folder(project: Path, name: str, text: str) -> Path:
    """The folder of a table of a project, declared by `text`."""
    folder = project / TABLES / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / DECLARATION).write_text(text)
    return folder


def limits(name: str = "limits", **changed: object) -> PlatformTable:
    """The declaration of limits by country, in a database unless `changed`."""
    given = {"source": "sqlite:////x.db", "query": "select country, most, since from limits"}
    if "path" in changed:
        given = {}
    columns = "country string, most decimal(18,4) not null, since timestamp"
    declared = {"title": "Limits", "owner": "risk", "columns": columns, "key": ["country"]}
    return PlatformTable.model_validate({"name": name, **declared, **given, **changed})


def in_sqlite(file: Path, rows: Iterable[Row]) -> str:
    """The URL of a database whose table `limits` has these rows and no others."""
    with sqlite3.connect(file) as connection:
        connection.execute("create table if not exists limits (country, most, since)")
        connection.execute("delete from limits")
        connection.executemany("insert into limits values (?, ?, ?)", [*rows])
    connection.close()
    return f"sqlite:///{file}"
