"""Files of lines, CSV and JSON: a row that cannot be read harms no other one, and a place is a byte."""

import csv
import io
from collections.abc import Callable, Generator
from typing import Any, BinaryIO

import msgspec

from lozenge.file_sources.definition import FileSource
from lozenge.protocol.file_positions import Place
from lozenge_upstream.files.json_rows import json_value
from lozenge_upstream.files.pieces import MOST_BYTES, BadRow, FileRow, Layout, Piece, UnreadableFile

_BOM = b"\xef\xbb\xbf"
_decoder = msgspec.json.Decoder()


class Lines:
    """The lines of a file from a byte on, each with its end; `offset` is behind the last one.

    Of a file that may grow, a last line without an end is not there yet. A longer line than `most` is cut.
    """

    def __init__(self, file: BinaryIO, offset: int, *, growing: bool, most: int = MOST_BYTES) -> None:
        self._file, self.growing, self._most = file, growing, most
        self.back_to(offset)

    def back_to(self, offset: int) -> None:
        """The next line is the one that begins at this byte."""
        self._file.seek(offset)
        self.offset = offset

    def next(self) -> bytes | None:
        """The next line; None at the end."""
        line = self._file.readline(self._most + 1)
        whole = len(line)
        while line and not line.endswith(b"\n") and (more := self._file.readline(self._most + 1)):
            whole += len(more)
            line = line[: self._most + 1] + more[-1:]
        if not line or (self.growing and not line.endswith(b"\n")):
            return None
        self.offset += whole
        return line


class JsonLinesFiles:
    """Reads files with a JSON object in each line; its bytes become the record."""

    def layout(self, file: BinaryIO, source: FileSource) -> Layout:
        """Nothing: each line has its own fields."""
        return Layout({})

    def pieces(
        self, file: BinaryIO, source: FileSource, place: Place, size: Callable[[], int]
    ) -> Generator[Piece, None, None]:
        """All lines from `place` on, without those that are blank."""
        lines = Lines(file, place.offset, growing=source.appendable)
        yield from _pieces(lines, lines.next, lambda number, raw: _json_row(number, raw, source.key), place.rows, size)


class CsvFiles:
    """Reads CSV files; the first line names the columns, and a field of a quoted text may have line ends."""

    def layout(self, file: BinaryIO, source: FileSource) -> Layout:
        """The names in the first line."""
        return Layout(dict.fromkeys(_header(file, source)[0], "text"))

    def pieces(
        self, file: BinaryIO, source: FileSource, place: Place, size: Callable[[], int]
    ) -> Generator[Piece, None, None]:
        """All rows from `place` on, without empty lines."""
        names, begin = _header(file, source)
        lines = Lines(file, place.offset or begin, growing=source.appendable)
        yield from _pieces(
            lines,
            lambda: _record(lines, source.delimiter),
            lambda number, raw: _csv_row(number, raw, names, source),
            place.rows,
            size,
        )


def _pieces(
    lines: Lines,
    record: Callable[[], bytes | None],
    read: Callable[[int, bytes], FileRow | BadRow],
    number: int,
    size: Callable[[], int],
) -> Generator[Piece, None, None]:
    """What `read` makes of each `record` of the lines, from row `number` on; one that is blank is no row."""
    while True:
        rows, bad, most = list[FileRow](), list[BadRow](), size()
        while len(rows) + len(bad) < most and (raw := record()) is not None:
            if raw.strip():
                row = read(number, raw)
                if isinstance(row, BadRow):
                    bad.append(row)
                else:
                    rows.append(row)
                number += 1
        yield Piece(Place(rows=number, offset=lines.offset), rows, bad)
        if not rows and not bad:
            return


def _json_row(number: int, line: bytes, key: str) -> FileRow | BadRow:
    text = line.strip()
    if len(text) > MOST_BYTES:
        return BadRow(number, text[:MOST_BYTES], f"the line has more than {MOST_BYTES:,} bytes")
    try:
        record = _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return BadRow(number, text, f"the line is not JSON: {error}")
    if not isinstance(record, dict):
        return BadRow(number, text, "the line is JSON, and no object")
    return _keyed(number, text, record.get(key) if key else None, key)


def _keyed(number: int, value: bytes, its_key: Any, key: str) -> FileRow | BadRow:
    if key and its_key in (None, ""):
        return BadRow(number, value, f"{key}, the key of its record, is missing")
    text = its_key if isinstance(its_key, str) or its_key is None else msgspec.json.encode(its_key).decode()
    return number, None if text is None else text.encode(), value


def _header(file: BinaryIO, source: FileSource) -> tuple[list[str], int]:
    file.seek(0)
    begin = len(_BOM) if file.read(len(_BOM)) == _BOM else 0
    lines = Lines(file, begin, growing=source.appendable)
    raw = _record(lines, source.delimiter)
    if raw is None:
        raise UnreadableFile("it is empty: the first line of CSV names the columns")
    try:
        names = _fields(raw, source.delimiter)
    except (csv.Error, UnicodeDecodeError) as error:
        raise UnreadableFile(f"its first line names no columns: {error}") from error
    if twice := {name for name in names if names.count(name) > 1}:
        raise UnreadableFile(f"its first line names {', '.join(sorted(twice))} twice")
    return names, lines.offset


def _record(lines: Lines, delimiter: str) -> bytes | None:
    """The bytes of the next record: lines until the quotes are even; None at the end.

    A quote that never ends would take the rest of the file, so a record of too many bytes ends with its first line.
    """
    begin = lines.offset
    if (raw := lines.next()) is None:
        return None
    first, after = raw, lines.offset
    while raw.count(b'"') % 2:
        if (more := lines.next()) is None or len(raw) + len(more) > MOST_BYTES:
            if more is None and lines.growing:
                lines.back_to(begin)
                return None
            lines.back_to(after)
            return first
        raw += more
    return raw


def _fields(raw: bytes, delimiter: str) -> list[str]:
    text = raw.decode().rstrip("\r\n")
    return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))


def _csv_row(number: int, raw: bytes, names: list[str], source: FileSource) -> FileRow | BadRow:
    if len(raw) > MOST_BYTES:
        return BadRow(number, raw[:MOST_BYTES], f"the row has more than {MOST_BYTES:,} bytes")
    try:
        fields = _fields(raw, source.delimiter)
    except UnicodeDecodeError as error:
        return BadRow(number, raw, f"byte {error.start} of the row is not UTF-8")
    except (csv.Error, StopIteration) as error:
        return BadRow(number, raw, f"the row is not CSV: {error}")
    if len(fields) != len(names):
        return BadRow(number, raw, f"the row has {len(fields)} fields, the first line {len(names)}")
    record = dict(zip(names, fields, strict=True))
    return _keyed(number, json_value(record), record[source.key] if source.key else None, source.key)
