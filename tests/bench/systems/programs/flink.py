"""`flink.py START.json CONNECTOR_JAR`: a PyFlink application in a cluster of its own process; its state is RocksDB.

At least once: a checkpoint every ten seconds. Python runs in the JVM's own process ("thread" mode). Unless there is a
backlog nothing waits for a bundle of records to fill up, which takes up to a second by default.
"""

import sys
from collections.abc import Iterator
from typing import Any

from pyflink.common import Configuration, Types, WatermarkStrategy
from pyflink.common.serialization import ByteArraySchema
from pyflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.connectors.base import DeliveryGuarantee
from pyflink.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from pyflink.datastream.state import ValueStateDescriptor
from records import KIND, ORDER, counted, decoded, encoded, moved, rule

BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
SETTINGS = {
    "python.execution-mode": "thread",
    "execution.checkpointing.interval": "10 s",
    "execution.checkpointing.mode": "AT_LEAST_ONCE",
    "execution.checkpointing.dir": f"file://{ORDER['folder']}/checkpoints",
    "state.backend.type": "rocksdb",
    "parallelism.default": "1",
    "python.executable": sys.executable,
}
AT_ONCE = {"python.fn-execution.bundle.size": "1", "execution.buffer-timeout.interval": "0 ms"}


class Count(KeyedProcessFunction):  # type: ignore[misc]
    def open(self, context: RuntimeContext) -> None:
        self.count = context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: bytes, context: Any) -> Iterator[bytes]:
        now = (self.count.value() or 0) + 1
        self.count.update(now)
        alert = counted(decoded(value), now)
        if alert is not None:
            yield encoded(alert)


class Follow(KeyedProcessFunction):  # type: ignore[misc]
    def open(self, context: RuntimeContext) -> None:
        self.country = context.get_state(ValueStateDescriptor("country", Types.STRING()))

    def process_element(self, value: bytes, context: Any) -> Iterator[bytes]:
        event = decoded(value)
        alert = moved(event, self.country.value())
        self.country.update(event["country"])
        if alert is not None:
            yield encoded(alert)


def large(value: bytes) -> Iterator[bytes]:
    alert = rule(decoded(value))
    if alert is not None:
        yield encoded(alert)


def alerts_of(events: DataStream) -> DataStream:
    if KIND == "rule":
        return events.flat_map(large, output_type=BYTES)
    cards = events.key_by(lambda value: decoded(value)["card_id"], key_type=Types.STRING())
    return cards.process(Count() if KIND == "aggregate" else Follow(), output_type=BYTES)


def main() -> None:
    settings = Configuration()
    for name, value in (SETTINGS if ORDER["linger_ms"] else SETTINGS | AT_ONCE).items():
        settings.set_string(name, value)
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    env.add_jars(f"file://{sys.argv[2]}")
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(ORDER["bootstrap"])
        .set_topics(ORDER["input"])
        .set_group_id(ORDER["name"])
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(ByteArraySchema())
        .build()
    )
    values = KafkaRecordSerializationSchema.builder().set_topic(ORDER["output"])
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(ORDER["bootstrap"])
        .set_record_serializer(values.set_value_serialization_schema(ByteArraySchema()).build())
        .set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
        .set_property("linger.ms", str(ORDER["linger_ms"]))
        .set_property("acks", "all")
        .build()
    )
    events = env.from_source(source, WatermarkStrategy.no_watermarks(), "events", BYTES)
    alerts_of(events).sink_to(sink)
    env.execute(ORDER["name"])


main()
