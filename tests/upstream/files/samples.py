"""Files of each format with the same rows, and how tests read them."""

import csv
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from lozenge.file_sources.definition import FileSource, Format
from lozenge.protocol.file_positions import Place
from lozenge_upstream.files.copying import READERS
from lozenge_upstream.files.pieces import Piece

COLUMNS = {"id": "string", "card": "string", "amount": "int64"}
AVRO_COLUMNS = {"id": "string", "card": "string", "amount": "long"}
TEXT_COLUMNS = dict.fromkeys(COLUMNS, "text")
SUFFIXES = {Format.PARQUET: "parquet", Format.AVRO: "avro", Format.CSV: "csv", Format.JSON_LINES: "jsonl"}


def source_of(path: Path, format: Format, **given: Any) -> FileSource:
    """A file source over the folder, complete at once; its columns are those of `rows_of`."""
    columns = {Format.PARQUET: COLUMNS, Format.AVRO: AVRO_COLUMNS, Format.CSV: TEXT_COLUMNS, Format.JSON_LINES: {}}
    declared = {"title": "t", "owner": "o", "topic": "ROWS", "key": "card", "complete": "rename"}
    found = FileSource.model_validate(
        {**declared, "name": "rows", "path": str(path), "format": format, "columns": columns[format], **given}
    )
    assert not list(found.problems())
    return found


def rows_of(file: str, count: int) -> list[dict[str, Any]]:
    """So many rows, each of which names its file."""
    return [{"id": f"{file}-{n}", "card": f"c{n % 7}", "amount": n} for n in range(count)]


def write(file: Path, format: Format, rows: Iterable[dict[str, Any]], *, group: int = 10) -> None:
    """Writes the file, with so many rows in a row group or a block, and gives it its name when it is complete."""
    rows, part = list(rows), file.with_name(f".{file.name}")
    match format:
        case Format.PARQUET:
            kinds: dict[str, Any] = {"id": pa.string(), "card": pa.string(), "amount": pa.int64()}
            schema = pa.schema(kinds)
            pq.write_table(pa.Table.from_pylist(rows, schema), part, row_group_size=group)
        case Format.AVRO:
            fields = [{"name": name, "type": kind} for name, kind in AVRO_COLUMNS.items()]
            with part.open("wb") as out:
                schema_of_rows = {"type": "record", "name": "Row", "fields": fields}
                fastavro.writer(out, fastavro.parse_schema(schema_of_rows), rows, sync_interval=group * 12)
        case Format.CSV:
            with part.open("w", newline="") as text:
                writer = csv.DictWriter(text, [*COLUMNS])
                writer.writeheader()
                writer.writerows(rows)
        case Format.JSON_LINES:
            part.write_text("".join(json.dumps(row) + "\n" for row in rows))
    part.rename(file)


def pieces(
    content: bytes, source: FileSource, place: Place | None = None, size: Callable[[], int] = lambda: 4
) -> list[Piece]:
    """All pieces of a file with this content from `place` on."""
    return [*READERS[source.format].pieces(io.BytesIO(content), source, place or Place(), size)]


def ids(found: Iterable[Piece]) -> list[str]:
    """The ids of the rows that could be read, in their order."""
    return [json.loads(value)["id"] for piece in found for *_, value in piece.rows]
