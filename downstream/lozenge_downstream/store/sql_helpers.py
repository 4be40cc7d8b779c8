"""Statements that all tables share: rows in bulk, values found by many keys, upserts.

Statements that run for each alert are built once, with parameters: to build one takes longer than to run it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite

CHUNK = 500
"""Values in one statement; databases limit their number."""


def insert(connection: sql.Connection, table: sql.Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes all of `rows`."""
    if batch := list(rows):
        connection.execute(_insert(table), batch)


def upsert(
    connection: sql.Connection,
    table: sql.Table,
    row: Mapping[str, Any],
    *,
    adding: str = "",
    where: sql.ColumnElement[bool] | None = None,
) -> None:
    """Writes one row. A row with its key is updated if `where` holds for it; the column `adding` is added to."""
    if where is None:
        statement = _cached_upsert(connection.dialect.name, table, tuple(row), adding)
    else:  # an expression has values in it, so the statement is used once
        statement = _upsert(connection.dialect.name, table, tuple(row), adding, where)
    connection.execute(statement, row)


def upsert_greater(
    connection: sql.Connection, table: sql.Table, rows: Iterable[Mapping[str, Any]], by: sql.Column[Any]
) -> None:
    """Writes all of `rows`. A row with the same key is replaced if the new one is greater in the column `by`."""
    if batch := list(rows):
        statement = _dialect_insert(connection.dialect.name, table)
        keys = [column.name for column in table.primary_key]
        changed = {c.name: statement.excluded[c.name] for c in table.c if c.name not in keys}
        greater = by < statement.excluded[by.name]
        connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=changed, where=greater), batch)


@cache
def _insert(table: sql.Table) -> sql.Insert:
    return table.insert()


@cache
def _cached_upsert(dialect: str, table: sql.Table, names: Sequence[str], adding: str) -> Any:
    return _upsert(dialect, table, names, adding, None)


def _upsert(
    dialect: str, table: sql.Table, names: Sequence[str], adding: str, where: sql.ColumnElement[bool] | None
) -> Any:
    statement = _dialect_insert(dialect, table)
    keys = [column.name for column in table.primary_key]
    changed = {name: statement.excluded[name] for name in names if name not in keys}
    if adding:
        changed[adding] = table.c[adding] + statement.excluded[adding]
    return statement.on_conflict_do_update(index_elements=keys, set_=changed, where=where)


def _dialect_insert(dialect: str, table: sql.Table) -> Any:
    return (postgresql if dialect == "postgresql" else sqlite).insert(table)


def among(query: sql.Select[Any], column: sql.ColumnElement[Any]) -> sql.Select[Any]:
    """`query`, restricted to rows whose `column` is among some values; for `found`."""
    return query.where(column.in_(sql.bindparam("among", expanding=True)))


def found(
    connection: sql.Connection, query: sql.Select[Any], values: Sequence[Any], **parameters: Any
) -> Iterator[Any]:
    """The rows of a `query` that `among` has restricted, for `values` of any number."""
    for start in range(0, len(values), CHUNK):
        yield from connection.execute(query, {**parameters, "among": values[start : start + CHUNK]})
