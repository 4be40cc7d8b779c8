"""Avro with Confluent framing in Python: byte 0, the 4-byte big-endian schema id, the Avro body.

`Codec` writes one schema and reads every id it has been taught, resolved into its own schema, so an
old reader takes new records and the other way round. `lozenge.spark.avro` writes the same bytes.
"""

import io
import struct
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import fastavro
from fastavro.read import LOGICAL_READERS
from fastavro.write import LOGICAL_WRITERS

from lozenge.contracts.schemas import Schema, newest, packaged
from lozenge.errors import DecodeError

MAGIC = 0
NO_HEADER = "decoding a record: it has no Confluent header (byte 0 and a schema id)"
_HEADER = struct.Struct(">bI")


def _decimal_bytes(value: object, schema: dict[str, Any]) -> object:
    """The unscaled number in the fewest bytes, as the JVM writes it; fastavro spends one more on -128 and its like."""
    if not isinstance(value, Decimal):
        return value
    unscaled = value.scaleb(schema["scale"])
    number = int(unscaled)
    if number != unscaled or abs(number) >= 10 ** schema["precision"]:
        raise ValueError(f"{value} does not fit decimal({schema['precision']}, {schema['scale']})")
    length = ((number if number >= 0 else ~number).bit_length() + 8) // 8
    return number.to_bytes(length, "big", signed=True)


def _decimal_of(data: bytes, writer: dict[Any, Any] | None, reader: object = None) -> Decimal:
    """The amount in `data`; fastavro would round one that is too large to its first digits."""
    assert writer is not None
    unscaled = int.from_bytes(data, "big", signed=True)
    if abs(unscaled) >= 10 ** writer["precision"]:
        raise ValueError(f"an amount of {len(data)} bytes does not fit decimal({writer['precision']})")
    return Decimal(unscaled).scaleb(-writer.get("scale", 0))


LOGICAL_WRITERS["bytes-decimal"] = _decimal_bytes
LOGICAL_READERS["bytes-decimal"] = _decimal_of


def incompatibilities(writer: Schema, reader: Schema) -> list[str]:
    """Why records of `writer` cannot be read as `reader`; none if they can. Raises ValueError for what is no schema."""
    try:
        fastavro.parse_schema(writer.definition)
        if writer.definition["type"] != "record":
            return ["it is no record"]
        written, read = writer.leaves, reader.leaves
        optional = {field["name"] for field in reader.definition["fields"] if "default" in field}
    except Exception as error:  # fastavro raises many types
        raise ValueError(f"it is no Avro schema: {type(error).__name__}: {error}") from error
    missing = [path for path in read if path not in written and path.split(".")[0] not in optional]
    other = [path for path in read if path in written and written[path] != read[path]]
    return [
        *(["its record is " + writer.record_name] if writer.record_name != reader.record_name else []),
        *(f"it has no field {path}" for path in missing),
        *(f"{path} is {written[path].name}, and not {read[path].name}" for path in other),
    ]


class UnknownSchema(DecodeError):
    """The record names a schema id that this codec was not taught; `id` is that number."""

    def __init__(self, schema_id: int) -> None:
        super().__init__(f"decoding a record: schema id {schema_id} is unknown")
        self.id = schema_id


def schema_id(data: bytes) -> int:
    """The id in framed bytes; raises DecodeError if they have no header."""
    if len(data) < _HEADER.size or data[0] != MAGIC:
        raise DecodeError(NO_HEADER)
    found: int = _HEADER.unpack_from(data)[1]
    return found


class Codec:
    """Encodes and decodes one contract; pure and thread-safe once built.

    Values are dictionaries as fastavro takes them: timestamps are aware datetimes, decimals are Decimal.
    """

    def __init__(self, writes: Schema, reads: Iterable[Schema] = ()) -> None:
        self.schema = writes
        self._target = fastavro.parse_schema(writes.definition)
        self._header = _HEADER.pack(MAGIC, writes.id)
        self._known: dict[int, Any] = {}
        for schema in (writes, *reads):
            self.learn(schema)

    @classmethod
    def of(cls, name: str) -> "Codec":
        """The codec of a packaged contract: writes its newest version, reads all."""
        return cls(newest(name), (s for s in packaged() if s.name == name))

    def learn(self, schema: Schema) -> None:
        """Teaches the codec one more writer's schema."""
        self._known[schema.id] = fastavro.parse_schema(schema.definition)

    def encode(self, record: dict[str, Any]) -> bytes:
        """The framed bytes of `record`; raises ValueError or TypeError where it does not fit the schema."""
        out = io.BytesIO()
        out.write(self._header)
        fastavro.schemaless_writer(out, self._target, record)
        return out.getvalue()

    def decode(self, data: bytes | None) -> dict[str, Any]:
        """The record in framed bytes; raises UnknownSchema or DecodeError."""
        data = data or b""
        found = schema_id(data)
        writer = self._known.get(found)
        if writer is None:
            raise UnknownSchema(found)
        try:
            body = io.BytesIO(data)
            body.seek(_HEADER.size)
            record: Any = fastavro.schemaless_reader(body, writer, self._target)
        except Exception as error:  # fastavro raises many types on hostile bytes
            raise DecodeError(f"decoding a record of schema id {found}: {type(error).__name__}: {error}") from error
        if rest := body.read():
            raise DecodeError(f"decoding a record of schema id {found}: {len(rest)} bytes left over")
        return dict(record)
