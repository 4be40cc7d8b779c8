"""Reference tables: their declared columns as Spark reads them, and what their files hold."""

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from os import SEEK_END
from pathlib import Path

from lozenge import ddl
from lozenge.detector.manifest import Manifest, Table
from lozenge_deploy.releases.lint.files import MARK

ROWS = 200_000
"""So many rows of a table are looked at."""
_OF_EVENTS = {
    "mcc": (r"[0-9]{4}", "four digits"),
    "country": (r"[A-Z]{2}", "two capitals"),
    "currency": (r"[A-Z]{3}", "three capitals"),
}
"""How events write what tables are joined on."""
_LEAST_PARQUET = 12
_NOT_IN_CSV = ("void", "interval")


def table_problems(folder: Path, declaration: Manifest) -> Iterator[str]:
    """What keeps Spark from reading a table, or makes it read other columns than declared."""
    for name, table in declaration.tables.items():
        try:
            declared = _declared(table)
        except ddl.DdlError as error:
            yield f"pyproject.toml: tool.lozenge.tables.{name}.columns: {error}"
            continue
        file = folder / table.path
        if not file.exists():
            yield f"{table.path}: missing; [tool.lozenge.tables] names it"
        elif table.columns:
            yield from (f"{table.path}: {problem}" for problem in _csv(file, list(declared)))
        else:
            yield from (f"{table.path}: {problem}" for problem in _parquet(file))


def table_warnings(folder: Path, declaration: Manifest) -> Iterator[str]:
    """Values on which a join with events never matches, such as a merchant category that lost its leading zero."""
    for table in declaration.tables.values():
        try:
            texts = [name for name, kind in _declared(table).items() if kind == "string"]
            rows = list(islice(_rows(folder / table.path), ROWS)) if table.columns else []
        except (OSError, ValueError, csv.Error):
            continue  # a problem of its own
        for column in sorted(_OF_EVENTS.keys() & set(texts)):
            pattern, words = _OF_EVENTS[column]
            at = list(_declared(table)).index(column)
            odd = [(line, row[at]) for line, row in rows[1:] if len(row) > at and not re.fullmatch(pattern, row[at])]
            if odd:
                line, value = odd[0]
                yield (
                    f"{table.path}: {len(odd)} value(s) of {column} are not {words}, which an event's {column} is, so "
                    f"no event matches: the first is {value!r} in line {line}"
                )


def _declared(table: Table) -> dict[str, ddl.DdlType]:
    """The type of each declared column; raises DdlError, also for what no CSV file holds."""
    declared = ddl.columns(table.columns) if table.columns else {}
    for name, kind in declared.items():
        if not isinstance(kind, str) or kind in _NOT_IN_CSV or kind.startswith(("char(", "varchar(", "time(")):
            shown = kind if isinstance(kind, str) else kind["type"]
            raise ddl.DdlError(f"{name}: Spark reads no {shown} from a CSV file")
    return declared


def _csv(file: Path, declared: Sequence[str]) -> Iterator[str]:
    if not file.is_file():
        yield "a folder; a CSV table is one file"
        return
    try:
        rows = _rows(file)
        _, header = next(rows, (1, []))
        if [name.strip().lower() for name in header] != [name.lower() for name in declared]:
            yield f"its columns are {header}, declared are {list(declared)}"
            return
        for line, row in islice(rows, ROWS):
            if len(row) != len(declared):
                yield f"line {line} has {len(row)} value(s), declared are {len(declared)} columns"
                return
    except (OSError, ValueError, csv.Error) as error:
        yield str(error)


def _rows(file: Path) -> Iterator[tuple[int, list[str]]]:
    """Line and values of each row, the header first; raises ValueError for a file that is not UTF-8, OSError."""
    with file.open(newline="", encoding="utf-8-sig") as lines:
        reader = csv.reader(lines, escapechar="\\")
        try:
            yield from ((reader.line_num, row) for row in reader if row)
        except UnicodeDecodeError as error:
            raise ValueError(f"line {reader.line_num + 1} is not UTF-8: save the file in that encoding") from error


def _parquet(file: Path) -> Iterator[str]:
    """Whether each file begins and ends as a Parquet file does; Spark ignores names that begin so."""
    files = [file] if file.is_file() else [each for each in file.rglob("*") if each.is_file()]
    files = [each for each in files if not each.name.startswith(("_", "."))]
    for each in files:
        with each.open("rb") as content:
            start = content.read(4)
            size = content.seek(0, SEEK_END)
            content.seek(max(0, size - 4))
            end = content.read(4)
        if size < _LEAST_PARQUET or (start, end) != (b"PAR1", b"PAR1"):
            what = "begins with a byte order mark" if start.startswith(MARK) else "is not a complete Parquet file"
            yield f"{each.name} {what}"
    if not files:
        yield "an empty folder"
