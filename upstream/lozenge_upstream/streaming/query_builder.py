"""Builds the query: the output rows of all sources as one DataFrame."""

from collections.abc import Mapping as Table
from concurrent.futures import ThreadPoolExecutor
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from lozenge.kafka.settings import KafkaSettings
from lozenge.spark import kafka_source
from lozenge.spark.checkpoint import Offsets
from lozenge_upstream.normalise.mapping import Mapping
from lozenge_upstream.normalise.normaliser import normalise
from lozenge_upstream.normalise.output_records import StreamOutput, outputs
from lozenge_upstream.settings import UpstreamSettings
from lozenge_upstream.streaming.recovery_read import RecoveryRead

SPARK = {
    "spark.sql.adaptive.enabled": "false",
    # keys of JSON that differ in case are two keys, in a record as in a mapping
    "spark.sql.caseSensitive": "true",
    # This rule would compute every record's targets twice to filter records without a target; there are none.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.InferFiltersFromGenerate",
    # A batch's shuffle files are deleted with the batch, not at the JVM's next garbage collection.
    "spark.sql.classic.shuffleDependency.fileCleanup.enabled": "true",
}
"""Spark's settings for these plans; results do not depend on them."""


def stream(
    spark: SparkSession,
    kafka: KafkaSettings,
    settings: UpstreamSettings,
    target: StreamOutput,
    mappings: list[Mapping],
    start: Offsets,
    partitions: dict[str, int],
    written: RecoveryRead,
    *,
    bounded: bool = True,
) -> DataFrame:
    """The output rows of `mappings` for `target` from `start` on; a topic that is not in `start` is not read.

    Each source is a stream with a plan of its own, so only its own mapping processes its records. `partitions` is the
    partition count of each output topic. Rows that `written` contains are skipped. `bounded` limits a batch by
    `max_offsets`; Real-Time Mode has no such limit.
    """
    key = settings.token_key.get_secret_value().encode()

    def source(mapping: Mapping) -> DataFrame:
        begin = {int(partition): offset for partition, offset in start[mapping.topic].items()}
        raw = kafka_source.stream(
            spark, kafka, target.app, mapping.topic, begin, settings.max_offsets if bounded else None
        )
        return _output(raw, mapping, key, target, partitions, written)

    with ThreadPoolExecutor() as planners:  # Spark analyses a plan again at every step, which takes a second or two
        return reduce(DataFrame.unionByName, planners.map(source, (m for m in mappings if m.topic in start)))


def of_records(
    records: Table[str, DataFrame],
    settings: UpstreamSettings,
    target: StreamOutput,
    mappings: list[Mapping],
    partitions: dict[str, int],
    written: RecoveryRead,
) -> DataFrame:
    """As `stream`, of raw records that were read already, by topic; there is at least one such topic."""
    key = settings.token_key.get_secret_value().encode()
    read = ((mapping, raw) for mapping in mappings if (raw := records.get(mapping.topic)) is not None)
    return reduce(
        DataFrame.unionByName, (_output(raw, mapping, key, target, partitions, written) for mapping, raw in read)
    )


def _output(
    raw: DataFrame,
    mapping: Mapping,
    key: bytes,
    target: StreamOutput,
    partitions: dict[str, int],
    written: RecoveryRead,
) -> DataFrame:
    rows = outputs(normalise(raw, mapping, key), mapping.source, target, partitions)
    return written.skip_written(rows, mapping.topic)
