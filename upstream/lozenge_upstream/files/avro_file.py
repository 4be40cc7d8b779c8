"""Avro container files: blocks are skipped without being decoded."""

import json
from collections.abc import Callable, Generator
from itertools import islice
from typing import Any, BinaryIO

import fastavro
import msgspec

from lozenge.file_sources.definition import FileSource
from lozenge.protocol.file_positions import Place
from lozenge_upstream.files.json_rows import json_value
from lozenge_upstream.files.pieces import Layout, Piece, UnreadableFile, piece_of


class AvroFiles:
    """Reads Avro container files. A place is a row within a block."""

    def layout(self, file: BinaryIO, source: FileSource) -> Layout:
        """The columns, of the header; how many rows there are no header says."""
        schema = _blocks(file).writer_schema
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise UnreadableFile("its schema is no record")
        return Layout({field["name"]: _type_text(field["type"]) for field in schema["fields"]})

    def pieces(
        self, file: BinaryIO, source: FileSource, place: Place, size: Callable[[], int]
    ) -> Generator[Piece, None, None]:
        """All rows from `place` on."""
        start = place
        try:
            for group, block in enumerate(_blocks(file)):
                if group < start.group or (group == start.group and start.within >= block.num_records):
                    continue
                within = start.within if group == start.group else 0
                records = islice(iter(block), within, None)
                while part := [*islice(records, size())]:
                    first, within = place.rows, within + len(part)
                    place = Place(rows=first + len(part), group=group, within=within)
                    values = [json_value(record) for record in part]
                    keys = [_key(record, source.key) for record in part]
                    yield piece_of(first, place, values, keys, source.key)
        except UnreadableFile:
            raise
        except Exception as error:  # fastavro raises what its reading of bad bytes happens to raise
            raise UnreadableFile(f"it is damaged after row {place.rows}: {type(error).__name__}: {error}") from error
        yield Piece(place)


def _blocks(file: BinaryIO) -> Any:
    file.seek(0)
    try:
        return fastavro.block_reader(file)
    except Exception as error:
        raise UnreadableFile(f"its header is not of Avro: {type(error).__name__}: {error}") from error


def _type_text(kind: Any) -> str:
    return kind if isinstance(kind, str) else json.dumps(kind, sort_keys=True)


def _key(record: dict[str, Any], key: str) -> bytes | None:
    value = record.get(key) if key else None
    if value is None or isinstance(value, str):
        return None if value is None else value.encode()
    return msgspec.json.encode(value).strip(b'"')
