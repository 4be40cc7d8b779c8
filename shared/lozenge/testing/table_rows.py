"""Rows that a test gives in place of a reference table."""

from collections.abc import Mapping, Sequence
from typing import Any

from lozenge import ddl
from lozenge.detector.manifest import Manifest
from lozenge.detector.tables.declared_table import Table


def check_rows(name: str, rows: Sequence[Mapping[str, Any]], declaration: Manifest) -> None:
    """Raises ValueError unless the rows are those of a declared table; a column that they lack is null.

    A column that is NOT NULL has a value in each row.
    """
    if (table := declaration.tables.get(name)) is None:
        declared = ", ".join(declaration.tables) or "none"
        raise ValueError(f"tables: {name} is not declared; [tool.lozenge.tables] has {declared}")
    if not table.ddl:
        if not rows:
            raise ValueError(f"tables: {name} has no rows, and a Parquet table has the columns of its rows")
        return
    columns = ddl.columns(table.ddl)
    if unknown := {column for row in rows for column in row} - columns.keys():
        raise ValueError(f"tables: {name} has no column {', '.join(sorted(unknown))}; it has {', '.join(columns)}")
    if absent := sorted({c for c in ddl.not_null(table.ddl) for row in rows if row.get(c) is None}):
        raise ValueError(f"tables: {name} has a row without {', '.join(absent)}, which is NOT NULL")


def complete(rows: Sequence[Mapping[str, Any]], table: Table) -> list[Mapping[str, Any]]:
    """The rows as the table has them: an entry of a list has always a reason and an author."""
    return [{"reason": "a test's", "author": "test"} | dict(row) for row in rows] if table.list else [*rows]
