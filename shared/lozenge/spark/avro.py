"""Avro with Confluent framing as Spark expressions; the same bytes as `lozenge.contracts.avro`."""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro, to_avro

from lozenge.contracts.schemas import Schema

UNKNOWN_SCHEMA = "LOZENGE_UNKNOWN_SCHEMA_ID"
"""Marks the error that `decode` raises for an id it does not know; the id follows after a colon."""


def encode(record: Column, schema: Schema) -> Column:
    """Framed bytes of a struct column whose fields match `schema` by name and order."""
    return F.concat(_header(schema), to_avro(record, schema.text))


def schema_id(data: Column) -> Column:
    """The schema id in the header of framed bytes; long, null for a tombstone and for bytes without a header."""
    number = F.conv(F.hex(F.substring(data, 2, 4)), 16, 10).cast("bigint")
    return F.when(F.substring(data, 1, 1) == F.unhex(F.lit("00")), number)


def decode(data: Column, known: Iterable[Schema], reader: Schema) -> Column:
    """The struct in framed bytes, each writer's schema resolved into `reader`.

    Bytes that are not Avro, and ids that are not `known`, fail the batch. The job then finds the record by its offset
    and makes it a dead letter, or learns the schema and tries again.
    """
    header, body = F.substring(data, 1, 5), F.substring(data, 6, 2**31 - 1)
    # What Spark takes for non-deterministic it evaluates once. Else it would push conditions on the event below the
    # decoding, and decode a record once for each of them.
    task = F.spark_partition_id().cast("string")
    number = F.coalesce(schema_id(data).cast("string"), F.lit("none"))
    decoded = F.raise_error(F.concat(F.lit(f"{UNKNOWN_SCHEMA}:"), number, F.lit(" in task "), task))
    options = {"mode": "FAILFAST", "avroSchema": reader.text}
    for schema in known:
        decoded = F.when(header == _header(schema), from_avro(body, schema.text, options)).otherwise(decoded)
    return decoded


def _header(schema: Schema) -> Column:
    return F.unhex(F.lit(f"00{schema.id:08x}"))
