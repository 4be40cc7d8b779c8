"""Avro with Confluent framing as Spark expressions; the same bytes as `lozenge.contracts.avro`, and the same refusals.

A record is decoded in two projections: `decode` reads it, `record_of` checks what was read. Each is evaluated once.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro, to_avro

from lozenge.contracts.avro import NO_HEADER
from lozenge.contracts.schemas import Schema

UNKNOWN_SCHEMA = "LOZENGE_UNKNOWN_SCHEMA_ID"
"""Marks the error that `record_of` raises for an id that is not known; the id follows after a colon."""
MALFORMED = "LOZENGE_MALFORMED_RECORD"
"""Marks the error that `record_of` raises for bytes; the schema id and what is wrong follow, each after a colon."""

_END = bytes.fromhex("d1a4f02b97c8ee15b36d0a7c58e94f31")
"""Read after each record: had it bytes left over, these would be read instead."""
_YEARS = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z")


def encode(record: Column, schema: Schema) -> Column:
    """Framed bytes of a struct column whose fields match `schema` by name and order."""
    return F.concat(_header(schema), to_avro(record, schema.text))


def schema_id(data: Column) -> Column:
    """The schema id in the header of framed bytes; long, null for a tombstone and for bytes without a header."""
    number = F.conv(F.hex(F.substring(data, 2, 4)), 16, 10).cast("bigint")
    return F.when((F.length(data) >= 5) & (F.substring(data, 1, 1) == F.unhex(F.lit("00"))), number)


def decode(data: Column, readers: Mapping[Schema, Schema]) -> Column:
    """What `record_of` takes: the record, each writer's schema resolved into its reader, and the end of the bytes.

    All readers have the same fields. Null for bytes of an id that is no writer's, or without a header.
    """
    header, body = F.substring(data, 1, 5), F.concat(F.substring(data, 6, 2**31 - 1), F.lit(_END))
    found: Any = F
    for schema, reader in readers.items():
        options = {"mode": "PERMISSIVE", "avroSchema": _with_end(reader)}
        found = found.when(header == _header(schema), from_avro(body, _with_end(schema), options))
    decoded: Column = found
    return decoded


def record_of(read: str, number: str, reader: Schema) -> Column:
    """The struct in the column `read`, made by `decode`; the column `number` has its schema id.

    A record with a `problem` fails the batch. The job then finds it by its offset and makes it a dead letter, or learns
    the schema and tries again.
    """
    # What Spark takes for non-deterministic it evaluates once. Else it would push conditions on the event below the
    # decoding, and decode a record once for each of them.
    task = F.concat(F.lit(" in task "), F.spark_partition_id().cast("string"))
    wrong = problem(read, number, reader)
    return F.when(wrong.isNull(), F.col(f"{read}.record")).otherwise(F.raise_error(F.concat(wrong, task)))


def problem(read: str, number: str, reader: Schema) -> Column:
    """Why the record in the column `read` is refused, for `words_of`; null for a good one.

    Refused are unknown ids, bytes that are not Avro, bytes left over or missing, texts that are no UTF-8 and times
    after the year 9999: what Python refuses too.
    """
    schema = F.coalesce(F.col(number).cast("string"), F.lit("none"))
    malformed = F.concat(F.lit(f"{MALFORMED}:"), schema)
    return (
        F.when(F.col(read).isNull(), F.concat(F.lit(f"{UNKNOWN_SCHEMA}:"), schema))
        .when(F.col(f"{read}.end").isNull(), F.concat(malformed, F.lit(":it is not Avro of that schema, or cut short")))
        .when(F.col(f"{read}.end") != F.lit(_END), F.concat(malformed, F.lit(":bytes left over")))
        .when(
            ~reduce(and_, _checks(f"{read}.record", reader)),
            F.concat(malformed, F.lit(":a text is no UTF-8, or a time is after the year 9999")),
        )
    )


def is_readable(time: Column) -> Column:
    """Whether readers in every language can have a time: it is of the years 1 to 9999. Null for null."""
    return time.between(*(F.lit(text).cast("timestamp") for text in _YEARS))


def record_or_null(data: Column, known: Iterable[Schema], reader: Schema) -> Column:
    """The struct in framed bytes; null for bytes that are none of `known`, which other writers have left there."""
    read = decode(data, dict.fromkeys(known, reader))
    return F.when(read["end"] == F.lit(_END), read["record"])


def words_of(problem: str) -> str | None:
    """What `lozenge.contracts.avro` says of the record with this `problem`, or of the error with it; None without."""
    if found := re.search(rf"{UNKNOWN_SCHEMA}:(\d+|none)", problem):
        return NO_HEADER if found[1] == "none" else f"decoding a record: schema id {found[1]} is unknown"
    if found := re.search(rf"{MALFORMED}:(\w+):(.+?)( in task|$)", problem):
        return f"decoding a record of schema id {found[1]}: {found[2]}"
    return None


def _with_end(schema: Schema) -> str:
    end = {"type": "fixed", "name": "End", "size": len(_END)}
    fields = [{"name": "record", "type": schema.definition}, {"name": "end", "type": end}]
    return json.dumps({"type": "record", "name": "Framed", "namespace": "lozenge.framing", "fields": fields})


def _checks(record: str, reader: Schema) -> Iterator[Column]:
    """What holds of every value that Python can read too; never null."""
    leaves = [(F.col(f"{record}.{path}"), kind.name) for path, kind in reader.leaves.items()]
    texts = [value for value, kind in leaves if kind == "string"]
    # one check is cheaper than one for each: with a line end between them, all are UTF-8 or the whole is not
    yield F.is_valid_utf8(F.concat_ws("\n", *texts))
    for value, kind in leaves:
        if kind == "timestamp-micros":
            yield F.coalesce(is_readable(value), F.lit(True))


def _header(schema: Schema) -> Column:
    return F.unhex(F.lit(f"00{schema.id:08x}"))
