"""CSV files of a reference table, read as a whole into typed columns, by the names in their header."""

import csv
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lozenge import ddl
from lozenge.process.text_files import text_in

MOST_PROBLEMS = 10
"""How many problems of one file are named; the others are counted."""
_COUNTED, _CHUNK = 10_000, 4_096
"""So many wrong values of a column are counted, and so many values are examined at once: a job waits meanwhile."""
_TYPES: Mapping[ddl.DdlType, pa.DataType] = {
    "string": pa.string(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_SPELT = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_ZONE = r"(Z|[+-]\d\d:?\d\d)$"


@dataclass(slots=True)
class CsvTable:
    """The rows of a table, or everything that is wrong with its files; `terminated` if every last line has an end."""

    rows: pa.Table
    terminated: bool = True
    problems: list[str] = field(default_factory=list)


def column_types(columns: str) -> dict[str, pa.DataType]:
    """The Arrow type of each column of Spark DDL, such as "country string, most decimal(18,4)".

    Raises ValueError with every column that is no DDL or that no CSV file can hold.
    """
    try:
        declared = ddl.columns(columns)
    except ddl.DdlError as error:
        raise ValueError(f"columns: {error}") from error
    found = {name: arrow for name, kind in declared.items() if (arrow := _type(kind)) is not None}
    if wrong := ", ".join(name for name in declared if name not in found):
        raise ValueError(
            f"columns: no CSV file holds the type of {wrong}; types are {', '.join(map(str, _TYPES))}, decimal"
        )
    return found


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
            return _cast(pa.array(values, pa.string()), kind)
        except pa.ArrowInvalid:
            self.problems += [
                f"{self._line(lines[row])}: {name} is {values[row]!r}, which is no {sql_name(kind)}"
                for row in islice(_wrong(values, kind), _COUNTED)
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


def sql_name(kind: pa.DataType) -> str:
    """The type as a declaration spells it: the same for all that Spark reads as the same."""
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_dictionary(kind):
        return sql_name(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "string"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    names = (str(name) for name, known in _TYPES.items() if known == kind)
    return _SPELT.get(found := next(names, str(kind)), found)


def _type(kind: ddl.DdlType) -> pa.DataType | None:
    """The Arrow type; None for what no CSV file holds. A text of a limited length is a text."""
    if not isinstance(kind, str):
        return None
    if decimal := _DECIMAL.fullmatch(kind):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return pa.string() if kind.startswith(("char(", "varchar(")) else _TYPES.get(kind)


def _cast(texts: Any, kind: pa.DataType) -> Any:
    """Raises ArrowInvalid if a text is no such value. A time without a zone is UTC."""
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return texts.cast(kind)
    zoned = pc.match_substring_regex(texts, _ZONE)
    null = pa.scalar(None, pa.string())
    aware = pc.if_else(zoned, texts, null).cast(kind)
    naive = pc.if_else(zoned, null, texts).cast(pa.timestamp("us")).cast(pa.int64()).cast(kind)
    return pc.coalesce(aware, naive)


def _wrong(texts: Sequence[str | None], kind: pa.DataType) -> Iterator[int]:
    """The places of the texts that are no such value."""
    for start in range(0, len(texts), _CHUNK):
        if not _fit(texts[start : start + _CHUNK], kind):
            yield from (at for at, text in enumerate(texts[start : start + _CHUNK], start) if not _fit([text], kind))


def _fit(texts: Sequence[str | None], kind: pa.DataType) -> bool:
    try:
        _cast(pa.array(texts, pa.string()), kind)
    except pa.ArrowInvalid:
        return False
    return True
