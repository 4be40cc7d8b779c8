"""Turns normalised records into output records: events, their re-keyed and merged copies, dead letters.

One pass: each record lists its target topics (the dead-letter topic, or every canonical topic) and is exploded into
one row per target, in the columns of Spark's Kafka sink. No canonical record has a null key: an event
without a key is not in the copy by that key.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lozenge.apps import UPSTREAM
from lozenge.contracts import dead_letters as d
from lozenge.contracts import headers as h
from lozenge.contracts import partitioner
from lozenge.contracts.topics import Topic, Topics
from lozenge.spark import avro, headers
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.merged import merged_topics
from lozenge_upstream.normalise.normaliser import DECODE_KINDS, SKIPPED, column_of, has_clock

EVENT_TYPE = "lozenge.event.v1"

_TRACEPARENT = "^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$"


@dataclass(frozen=True)
class StreamOutput:
    """Where the events of a stream go among a platform's topics: its own topic, copies by further keys, merged topics.

    A merged topic has the events of several streams by one of `merges`, each as it is in the stream's own topic.
    """

    stream: StreamDefinition
    topics: Topics
    copies: tuple[str, ...]
    merges: tuple[str, ...] = ()

    @property
    def events(self) -> str:
        """The topic of the stream."""
        return self.stream.events(self.topics)

    @property
    def app(self) -> str:
        """The name of its normaliser."""
        return self.stream.app

    @property
    def dead_letters(self) -> str:
        """The topic of raw records that are no events."""
        return self.topics.dead_letters(self.app)

    @property
    def coverage(self) -> str:
        """The topic of which raw records were processed."""
        return self.topics.detector(self.app).coverage

    @property
    def keys(self) -> dict[str, str]:
        """The field that keys each topic of events, the stream's own first."""
        names = (self.stream.primary, *self.copies)
        found = {self.stream.events(self.topics, name): self.stream.column(name) for name in names}
        return found | {self.topics.merged(name): self.stream.column(name) for name in self.merges}

    def contracts(self) -> list[Topic]:
        """Every topic that upstream writes for it."""
        written = {*self.keys, self.dead_letters, self.coverage}
        merged = merged_topics(self.topics, [self.stream], self.merges)
        declared = [*self.stream.topics(self.topics, self.copies), *merged]
        return [topic for topic in declared if topic.name in written]


def outputs(normalised: DataFrame, source: str, target: StreamOutput, partitions_of: dict[str, int]) -> DataFrame:
    """Rows of topic, partition, key, value and headers, with four columns that are not written.

    These are `reason`, `arrived`, `happened` and `raw`, the raw record's partition and offset. `reason` is null for
    events; `arrived` is the raw record's Kafka timestamp and `happened` the event time, both in microseconds. A record
    that is skipped by declaration has one row without a topic: to be counted, and not written.

    `partitions_of` is the partition count of each topic of `target`.
    """
    good = F.col("reason").isNull()
    stream = target.stream
    targets = [_target(topic, F.col(column_of(key)), partitions_of[topic]) for topic, key in target.keys.items()]
    events = F.array(*targets)
    if {field.name for field in stream.fields if field.optional} & {*target.keys.values()}:
        events = F.filter(events, lambda target: target["key"].isNotNull())
    dead_letters = _dead_letter(target.dead_letters, partitions_of)
    return (
        normalised.withColumn("_value", F.when(good, event_value(source, stream)).otherwise(F.col("value")))
        .withColumn(
            "_headers", F.when(good, _event_headers(source, stream)).otherwise(_dead_letter_headers(target.app))
        )
        .withColumn("_targets", F.when(good, events).when(_is_skipped(), _nowhere()).otherwise(dead_letters))
        .select(
            F.explode("_targets").alias("_target"),
            *("_value", "_headers", "reason", "timestamp", "event_time"),
            F.struct("partition", "offset").alias("raw"),
        )
        .select(
            "_target.topic",
            "_target.partition",
            "_target.key",
            F.col("_value").alias("value"),
            F.col("_headers").alias("headers"),
            "reason",
            F.unix_micros("timestamp").alias("arrived"),
            F.unix_micros("event_time").alias("happened"),
            "raw",
        )
    )


def in_order(rows: DataFrame, partitions_: int) -> DataFrame:
    """`rows` of one batch, ordered by time within each of the `partitions_` of an output topic.

    Spark reads one raw partition after the other, so a backlog would be emitted as several passes over the same hours.
    A consumer with a clock per partition would take all but the first pass for late. Records that arrived in the same
    millisecond, as replayed history does, are ordered by event time; equal ones by raw offset, so that a repeated batch
    has the same order.
    """
    return rows.repartitionById(partitions_, "partition").sortWithinPartitions("arrived", "happened", "raw")


def _is_skipped() -> Column:
    return F.col("reason").startswith(SKIPPED)


def _nowhere() -> Column:
    topic, key = F.lit(None).cast("string"), F.lit(None).cast("binary")
    return F.array(F.struct(topic.alias("topic"), F.lit(0).alias("partition"), key.alias("key")))


def _target(topic: str, key: Column, partitions_: int) -> Column:
    return F.struct(
        F.lit(topic).alias("topic"),
        partitioner.partition_column(key, partitions_).alias("partition"),
        key.cast("binary").alias("key"),
    )


def event_value(source: str, stream: StreamDefinition) -> Column:
    """The bytes of the event of a normalised record; null for one that is no event."""
    raw = F.struct(F.lit(source).alias("source"), "topic", "partition", "offset", "timestamp")
    record = F.struct(
        "event_id", "event_time", *(F.col(column_of(f.name)).alias(f.name) for f in stream.fields), raw.alias("raw")
    )
    return avro.encode(F.when(F.col("reason").isNull(), record), stream.event_schema)


def _event_headers(source: str, stream: StreamDefinition) -> Column:
    return headers.cloud_event(
        id=F.col("event_id"),
        source=f"/{UPSTREAM}/{source}",
        type=EVENT_TYPE,
        subject=F.col(column_of(stream.column(stream.primary))),
        time=F.col("event_time"),
        traceparent=_traceparent(),
    )


def _traceparent() -> Column:
    """The raw record's own where it is well-formed, else `lozenge.contracts.headers.derived_traceparent`."""
    own = F.get(F.filter("headers", lambda header: header["key"] == h.TRACEPARENT), F.lit(0))["value"].cast("string")
    digest = F.sha2(F.concat_ws("/", "topic", "partition", "offset").cast("binary"), 256)
    derived = F.concat(F.lit("00-"), F.left(digest, F.lit(32)), F.lit("-"), F.substring(digest, 33, 16), F.lit("-01"))
    return F.coalesce(F.when(own.rlike(_TRACEPARENT), own), derived)


def _dead_letter(topic: str, partitions_of: dict[str, int]) -> Column:
    target = F.struct(
        F.lit(topic).alias("topic"),
        F.pmod("partition", F.lit(partitions_of[topic])).alias("partition"),
        F.col("key"),
    )
    return F.array(target)


def _dead_letter_headers(app: str) -> Column:
    """What `lozenge.contracts.dead_letters.dead_letter_headers` adds, with the same precedence."""
    original = F.coalesce(F.col("headers"), F.array().cast(headers.TYPE))
    kept = F.filter(original, lambda header: ~header["key"].isin(d.ATTEMPT, d.RAW_POSITION))
    stage = F.when(F.col("reason").isin(*DECODE_KINDS), "decode").otherwise("normalise")
    added = {
        d.SOURCE_TOPIC: F.col("topic"),
        d.SOURCE_PARTITION: F.col("partition").cast("string"),
        d.SOURCE_OFFSET: F.col("offset").cast("string"),
        d.APP: F.lit(app),
        d.STAGE: stage,
        d.ERROR: F.lit("DecodeError"),
        d.MESSAGE: F.left("reason", F.lit(d.MESSAGE_LENGTH)),
        d.FIRST_FAILED_AT: F.when(has_clock(), headers.time("timestamp")),
    }
    new = F.filter(headers.headers(added), lambda header: ~F.exists(kept, lambda old: old["key"] == header["key"]))
    attempts = F.transform(
        F.filter(original, lambda header: header["key"] == d.ATTEMPT),
        lambda header: header["value"].cast("string"),
    )
    counted = F.transform(
        F.filter(attempts, lambda text: text.rlike("^[0-9]{1,9}$")), lambda text: text.try_cast("int")
    )
    attempt = F.coalesce(F.array_max(counted), F.lit(0)) + 1
    own = {d.ATTEMPT: attempt.cast("string"), d.RAW_POSITION: F.concat_ws("/", "topic", "partition", "offset")}
    return F.concat(kept, new, headers.headers(own))
