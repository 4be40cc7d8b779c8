"""The plan of the query: the output rows of all sources as one streaming DataFrame."""

import json
from concurrent.futures import ThreadPoolExecutor
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from lozenge.kafka.settings import KafkaSettings
from lozenge.spark.live_lag import group_of
from lozenge_upstream.normalise.mapping import Mapping
from lozenge_upstream.normalise.normaliser import normalise
from lozenge_upstream.normalise.output_records import APP, outputs
from lozenge_upstream.settings import UpstreamSettings
from lozenge_upstream.streaming.group_position import Offsets
from lozenge_upstream.streaming.read_back import ReadBack

SPARK = {
    # Fused into one, a whole mapping is a method of 17 kB, and the JVM compiles none above 8 kB but interprets
    # it. Projection by projection it takes half the processor time.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    # It would compute every record's places twice, to leave out records that go nowhere; there are none.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.InferFiltersFromGenerate",
    # A batch's shuffle files go with the batch, not when the JVM next collects its garbage.
    "spark.sql.classic.shuffleDependency.fileCleanup.enabled": "true",
}
"""How Spark runs these plans; the results do not depend on it."""


def stream(
    spark: SparkSession,
    kafka: KafkaSettings,
    settings: UpstreamSettings,
    mappings: list[Mapping],
    start: Offsets,
    partitions: dict[str, int],
    written: ReadBack,
    *,
    bounded: bool = True,
) -> DataFrame:
    """What `mappings` make of their topics from `start` on; of a topic that is not in `start` nothing is read.

    Each source is its own stream with its own plan, so a record is judged by its own source's mapping only.
    `partitions` tells how many each output topic has, and `written` what is left out. Not `bounded` is a batch in
    Real-Time Mode.
    """
    key = settings.token_key.get_secret_value().encode()

    def source(mapping: Mapping) -> DataFrame:
        begin = start[mapping.topic]
        raw = (
            spark.readStream.format("kafka")
            .options(**kafka.spark())
            .option("assign", json.dumps({mapping.topic: sorted(map(int, begin))}))
            .option("startingOffsets", json.dumps({mapping.topic: begin}))
            .option("failOnDataLoss", "true")
            .option("includeHeaders", "true")
            .option("groupIdPrefix", APP if bounded else group_of(APP))
            .option("kafka.isolation.level", "read_committed")
            .options(**({"maxOffsetsPerTrigger": str(settings.max_offsets)} if bounded else {}))
            .load()
        )
        return written.left_out(
            outputs(normalise(raw, mapping, key), mapping.source, partitions, settings.rekeys), mapping.topic
        )

    with ThreadPoolExecutor() as planners:  # Spark analyses a plan anew at every step; that takes a second or two
        return reduce(DataFrame.unionByName, planners.map(source, (m for m in mappings if m.topic in start)))
