"""Rows that a test gives in place of a reference table."""

from collections.abc import Mapping, Sequence
from typing import Any

from lozenge import ddl
from lozenge.detector.manifest import Manifest


def check_rows(name: str, rows: Sequence[Mapping[str, Any]], declaration: Manifest) -> None:
    """Raises ValueError unless the rows are those of a declared table; a column that they lack is null."""
    if (table := declaration.tables.get(name)) is None:
        declared = ", ".join(declaration.tables) or "none"
        raise ValueError(f"tables: {name} is not declared; [tool.lozenge.tables] has {declared}")
    if not table.columns:
        if not rows:
            raise ValueError(f"tables: {name} has no rows, and a Parquet table has the columns of its rows")
        return
    columns = ddl.columns(table.columns)
    if unknown := {column for row in rows for column in row} - columns.keys():
        raise ValueError(f"tables: {name} has no column {', '.join(sorted(unknown))}; it has {', '.join(columns)}")
