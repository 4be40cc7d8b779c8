"""Small things that all tables share: rows in bulk, values found by many keys, a number that is set or added to."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite

CHUNK = 500
"""Of the values that one statement names: databases bound these."""


def insert(connection: sql.Connection, table: sql.Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes all of `rows`."""
    if batch := list(rows):
        connection.execute(table.insert(), batch)


def upsert(
    connection: sql.Connection,
    table: sql.Table,
    row: Mapping[str, Any],
    *,
    changes: Mapping[str, Any] | None = None,
    where: sql.ColumnElement[bool] | None = None,
) -> None:
    """Writes one row; or, to the one that has its key and is as `where` says, makes `changes`: all that is no key."""
    statement: Any = _insert(connection, table).values(row)
    keys = [column.name for column in table.primary_key]
    changed = changes or {name: value for name, value in row.items() if name not in keys}
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=changed, where=where))


def upsert_greater(
    connection: sql.Connection, table: sql.Table, rows: Iterable[Mapping[str, Any]], by: sql.Column[Any]
) -> None:
    """Writes all of `rows`; one whose key is there takes its place if it is greater in the column `by`."""
    if batch := list(rows):
        statement = _insert(connection, table)
        keys = [column.name for column in table.primary_key]
        changed = {c.name: statement.excluded[c.name] for c in table.c if c.name not in keys}
        greater = by < statement.excluded[by.name]
        connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=changed, where=greater), batch)


def _insert(connection: sql.Connection, table: sql.Table) -> Any:
    return (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(table)


def found(
    connection: sql.Connection, query: sql.Select[Any], column: sql.ColumnElement[Any], values: Sequence[Any]
) -> Iterator[Any]:
    """What `query` finds with `column` among `values`."""
    for start in range(0, len(values), CHUNK):
        yield from connection.execute(query.where(column.in_(values[start : start + CHUNK])))
