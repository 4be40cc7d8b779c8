"""Parquet: a row group is decoded as it is read, so memory does not depend on its size."""

from collections.abc import Callable, Generator, Iterator
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from lozenge.file_sources.definition import FileSource
from lozenge.protocol.file_positions import Place
from lozenge_upstream.files.json_rows import json_rows, texts
from lozenge_upstream.files.pieces import BadRow, Layout, Piece, UnreadableFile, piece_of

_BATCH_ROWS = 10_000


class ParquetFiles:
    """Reads Parquet files. A place is a row within a row group."""

    def layout(self, file: BinaryIO, source: FileSource) -> Layout:
        """Columns and rows, of the footer."""
        try:
            footer = pq.ParquetFile(file)
        except (pa.ArrowException, OSError) as error:
            raise UnreadableFile(f"its footer is not of Parquet: {_first_line(error)}") from error
        columns = {each.name: str(each.type) for each in footer.schema_arrow}
        return Layout(columns, footer.metadata.num_rows)

    def pieces(
        self, file: BinaryIO, source: FileSource, place: Place, size: Callable[[], int]
    ) -> Generator[Piece, None, None]:
        """All rows from `place` on."""
        table = pq.ParquetFile(file, pre_buffer=False)
        for group in range(place.group, table.num_row_groups):
            within = place.within if group == place.group else 0
            for rows in self._from(table, group, within, [*source.columns], place):
                while rows.num_rows:
                    count = min(size(), rows.num_rows)
                    part, rows = rows.slice(0, count), rows.slice(count)
                    first, within = place.rows, within + count
                    place = Place(rows=first + count, group=group, within=within)
                    yield _piece(part, first, place, source.key)
        yield Piece(place)

    def _from(
        self, table: pq.ParquetFile, group: int, within: int, columns: list[str], place: Place
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a row group, without the first `within`."""
        try:
            for rows in table.iter_batches(_BATCH_ROWS, row_groups=[group], columns=columns):
                if within < rows.num_rows:
                    yield rows.slice(within)
                within = max(0, within - rows.num_rows)
        except (pa.ArrowException, OSError) as error:
            raise UnreadableFile(f"row group {group} is damaged: {_first_line(error)}") from error


def _piece(rows: pa.RecordBatch, first: int, end: Place, key: str) -> Piece:
    """The rows from number `first` on. If they cannot be written as JSON together, each is tried alone."""
    try:
        return piece_of(first, end, json_rows(rows), _keys(rows, key), key)
    except (pa.ArrowException, ValueError, OverflowError) as error:  # such as a text that is not UTF-8
        if rows.num_rows == 1:
            problem = f"row group {end.group}: {_first_line(error)}"
            return Piece(end, bad=[BadRow(first, b"", problem)])
    alone = [_piece(rows.slice(number, 1), first + number, end, key) for number in range(rows.num_rows)]
    return Piece(end, [row for each in alone for row in each.rows], [row for each in alone for row in each.bad])


def _keys(rows: pa.RecordBatch, key: str) -> list[bytes | None]:
    if not key:
        return [None] * rows.num_rows
    return texts(rows.column(key))


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]
