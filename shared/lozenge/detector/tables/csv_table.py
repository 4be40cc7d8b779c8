"""CSV files of a reference table, read as a whole into typed columns, by the names in their header."""

import csv
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from lozenge.platform_tables.column_types import cast, misfits, sql_name
from lozenge.process.text_files import text_in

MOST_PROBLEMS = 10
"""How many problems of one file are named; the others are counted."""
_COUNTED = 10_000
"""So many wrong values of a column are counted: a job waits meanwhile."""


@dataclass(slots=True)
class CsvTable:
    """The rows of a table, or everything that is wrong with its files; `terminated` if every last line has an end."""

    rows: pa.Table
    terminated: bool = True
    problems: list[str] = field(default_factory=list)


def read(
    files: Sequence[tuple[str, Path]], columns: Mapping[str, pa.DataType], required: Collection[str] = ()
) -> CsvTable:
    """The rows of all files, each with the name that problems give it; raises OSError.

    Columns are found by the names in the header, in any order; others are ignored. An empty field is null, which a
    `required` column never is.
    """
    parts, problems, terminated = list[pa.Table](), list[str](), True
    for name, file in files:
        try:
            text = text_in(file.read_bytes())
        except UnicodeDecodeError as error:
            problems.append(
                f"{name} is not UTF-8: byte {error.object[error.start]:#x} at {error.start}; save it as UTF-8"
            )
            continue
        terminated &= text.endswith(("\n", "\r"))
        rows = _Rows(name, columns, required)
        if (found := rows.read(text)) is not None:
            parts.append(found)
        problems += rows.problems
    if len(problems) > MOST_PROBLEMS:
        least = "at least " if len(problems) >= _COUNTED else ""
        problems = [*problems[:MOST_PROBLEMS], f"and {least}{len(problems) - MOST_PROBLEMS} more"]
    empty = pa.schema(list(columns.items())).empty_table()
    return CsvTable(pa.concat_tables(parts) if parts and not problems else empty, terminated, problems)


class _Rows:
    """Reads one file; `problems` name its lines."""

    def __init__(self, name: str, columns: Mapping[str, pa.DataType], required: Collection[str]) -> None:
        self._name, self._columns, self._required = name, columns, required
        self.problems: list[str] = []

    def read(self, text: str) -> pa.Table | None:
        """The rows; None if there are problems."""
        lines: list[int] = []
        fields: dict[str, list[str | None]] = {name: [] for name in self._columns}
        reader = csv.reader(StringIO(text, newline=""), strict=True)
        try:
            header = next(reader, [])
            if not self._check_header(header):
                return None
            at = {name: _place(name, header) for name in self._columns}
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    self.problems.append(
                        f"{self._line(reader.line_num)} has {len(row)} fields, the header {len(header)}"
                    )
                    continue
                lines.append(reader.line_num)
                for name, values in fields.items():
                    values.append(row[at[name]] or None)
        except csv.Error as error:
            self.problems.append(f"{self._line(reader.line_num)}: {error}")
        columns = [self._typed(name, fields[name], kind, lines) for name, kind in self._columns.items()]
        return None if self.problems else pa.table(columns, names=list(self._columns))

    def _check_header(self, header: Sequence[str]) -> bool:
        missing = [name for name in self._columns if _place(name, header) < 0]
        twice = [name for name in self._columns if header.count(name) > 1]
        have = ", ".join(header) or "none"
        if missing and len(header) == 1 and (other := separator_in(have)):
            have += f"; commas separate columns, not {other!r}"
        if missing:
            self.problems.append(f"{self._name} has no column {', '.join(missing)}; its columns are {have}")
        if twice:
            self.problems.append(f"{self._name} has the column {', '.join(twice)} more than once")
        return not self.problems

    def _typed(self, name: str, values: list[str | None], kind: pa.DataType, lines: Sequence[int]) -> Any:
        if name in self._required:
            absent = (row for row, value in enumerate(values) if value is None)
            self.problems += [
                f"{self._line(lines[row])}: {name} is empty, and it is NOT NULL" for row in islice(absent, _COUNTED)
            ]
        try:
            return cast(pa.array(values, pa.string()), kind)
        except pa.ArrowInvalid:
            self.problems += [
                f"{self._line(lines[row])}: {name} is {values[row]!r}, which is no {sql_name(kind)}"
                for row in islice(misfits(values, kind), _COUNTED)
            ]
            return None

    def _line(self, number: int) -> str:
        return f"{self._name} line {number}"


def separator_in(name: str) -> str:
    """What else than a comma separates columns in the only name of a header; "" if nothing does."""
    return next((sign for sign in ";\t|" if sign in name), "")


def _place(name: str, header: Sequence[str]) -> int:
    """Where a column is in the header, as Spark finds it, in upper or lower case; -1 if nowhere."""
    if name in header:
        return header.index(name)
    alike = [place for place, found in enumerate(header) if found.strip().lower() == name.lower()]
    return alike[0] if len(alike) == 1 else -1
