"""A little of what jobs do: JSON, Avro, a stateless and a stateful streaming query, a call back into Python, Kafka."""

import json
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro, to_avro

from lozenge.spark.internals import driver_jvm

CLIENT = "lozenge-training"
"""The name of its Kafka clients, which have no broker; what they say of that is not logged (`log4j2.properties`)."""
_AVRO = '{"type":"record","name":"r","fields":[{"name":"k","type":"long"},{"name":"v","type":"string"}]}'


def train(spark: SparkSession, folder: Path) -> None:
    """Does it once, in some seconds, with files in `folder`: what it touches is loaded and compiled afterwards."""
    raw = folder / "raw"
    raw.mkdir()
    lines = [json.dumps({"k": k, "v": "2026-01-01T00:00:00Z"}) for k in range(9)]
    raw.joinpath("1.json").write_text("\n".join(lines))
    events = _decoded(spark.readStream.text(str(raw)))
    counts = events.withWatermark("at", "1 minute").groupBy(F.window("at", "1 minute"), "k").count()
    for name, frame in {"stateless": events.where("k > 1"), "stateful": counts}.items():
        writer = frame.writeStream.foreachBatch(_collect).outputMode("update").trigger(availableNow=True)
        writer.option("checkpointLocation", str(folder / name)).start().awaitTermination()
    _kafka_clients(spark)


def _decoded(lines: DataFrame) -> DataFrame:
    record = F.from_json("value", "k long, v string")
    framed = F.concat(F.lit(b"\0"), to_avro(record, _AVRO))
    row = from_avro(F.expr("substring(framed, 2)"), _AVRO, {"mode": "PERMISSIVE"})
    decoded = lines.withColumn("framed", framed).select(row.alias("r"), F.crc32("framed").alias("crc"))
    at, amount = F.to_timestamp("r.v").alias("at"), F.col("crc").cast("decimal(18,2)").alias("amount")
    return decoded.select("r.k", "crc", at, amount)


def _collect(batch: DataFrame, number: int) -> None:
    batch.toArrow()
    batch.collect()


def _kafka_clients(spark: SparkSession) -> None:
    """Loads the connector and constructs a client of each kind; no broker is where they look for one."""
    spark.readStream.format("kafka").options(**{"kafka.bootstrap.servers": "127.0.0.1:9", "subscribe": "none"}).load()
    jvm = driver_jvm.java(spark)
    settings = jvm.java.util.HashMap()
    settings.put("bootstrap.servers", "127.0.0.1:9")
    settings.put("client.id", CLIENT)
    for kind in ("Serializer", "Deserializer"):
        side = "key.{}", "value.{}"
        for name in side:
            settings.put(name.format(kind.lower()), f"org.apache.kafka.common.serialization.ByteArray{kind}")
    jvm.org.apache.kafka.clients.consumer.KafkaConsumer(settings).close()
    jvm.org.apache.kafka.clients.producer.KafkaProducer(settings).close()
    jvm.org.apache.kafka.clients.admin.AdminClient.create(settings).close()
