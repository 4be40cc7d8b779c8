"""The one partition function: `crc32(key) mod n`.

Spark's `crc32()`, `zlib.crc32` and librdkafka's `consistent` partitioner compute the same value, so a
key lives in the same partition for every writer. Spark's Kafka sink (murmur2) and `hash()` (murmur3)
do not, hence every writer in the project sets the partition explicitly.
"""

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column


def partition_of(key: bytes, partitions: int) -> int:
    """The partition, 0 <= p < `partitions`, where `key` lives."""
    return zlib.crc32(key) % partitions


def partition_column(key: "Column", partitions: int) -> "Column":
    """`partition_of` as a Spark expression over a string or binary column; int."""
    from pyspark.sql import functions as F

    return F.pmod(F.crc32(key.cast("binary")), F.lit(partitions)).cast("int")
