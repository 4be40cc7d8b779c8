"""Avro with Confluent framing as Spark expressions; the same bytes as `lozenge.avro`."""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro, to_avro

from lozenge.schemas import Schema

UNKNOWN_SCHEMA = "LOZENGE_UNKNOWN_SCHEMA_ID"
"""Marks the error that `decode` raises for an id it does not know; the id follows after a colon."""


def encode(record: Column, schema: Schema) -> Column:
    """Framed bytes of a struct column whose fields match `schema` by name and order."""
    header = F.unhex(F.lit(f"00{schema.id:08x}"))
    return F.concat(header, to_avro(record, schema.text))


def schema_id(data: Column) -> Column:
    """The schema id in the header of framed bytes; long, null for a tombstone."""
    return F.conv(F.hex(F.substring(data, 2, 4)), 16, 10).cast("bigint")


def decode(data: Column, known: Iterable[Schema], reader: Schema) -> Column:
    """The struct in framed bytes, each writer's schema resolved into `reader`.

    Bytes that are not Avro, and ids that are not `known`, fail the batch: the job finds the record by
    its offset and makes it a dead letter, or learns the schema and tries again.
    """
    body = F.substring(data, 6, 2**31 - 1)
    number = schema_id(data)
    struct = F.raise_error(F.concat(F.lit(f"{UNKNOWN_SCHEMA}:"), F.coalesce(number.cast("string"), F.lit("none"))))
    options = {"mode": "FAILFAST", "avroSchema": reader.text}
    branches = [(number == schema.id, from_avro(body, schema.text, options)) for schema in known]
    decoded = F.when(*branches[0])
    for condition, value in branches[1:]:
        decoded = decoded.when(condition, value)
    return decoded.otherwise(struct)
