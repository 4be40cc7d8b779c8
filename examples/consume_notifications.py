"""Reads every notification and proves by `seq` that it missed none.

python examples/consume_notifications.py 127.0.0.1:9092
"""

import sys

from kafka import KafkaConsumer, TopicPartition

from lozenge.contracts.avro import Codec
from lozenge.kafka.schema_topic import learn
from lozenge.kafka.settings import KafkaSettings

kafka = KafkaSettings.local(sys.argv[1])
codec = Codec.of("notification")
for schema in learn(kafka, "notification"):  # a schema registry may have given other ids
    codec.learn(schema)
consumer = KafkaConsumer(
    kafka.topics.notifications,
    bootstrap_servers=kafka.bootstrap,
    isolation_level="read_committed",  # Kafka's default, read_uncommitted, also returns aborted records
    auto_offset_reset="earliest",
    consumer_timeout_ms=10_000,  # ends after ten seconds without a record; remove it to wait for ever
)
expected: dict[int, int] = {}
for record in consumer:
    notification = codec.decode(record.value)
    seq = notification["seq"]
    if record.partition not in expected:  # the first seq is 0, unless retention has deleted the oldest
        partition = TopicPartition(record.topic, record.partition)
        expected[record.partition] = seq if consumer.beginning_offsets([partition])[partition] else 0
    if seq != expected[record.partition]:
        print(f"GAP partition {record.partition}: expected seq {expected[record.partition]}, got {seq}")
    expected[record.partition] = seq + 1
    print(record.partition, seq, notification["severity"], notification["title"], notification["case_id"])
