"""Reads every notification and proves by `seq` that it missed none.

python examples/consume_notifications.py 127.0.0.1:9092
"""

import sys
from io import BytesIO

import fastavro
from kafka import KafkaConsumer
from lozenge.schemas import newest

schema = fastavro.parse_schema(newest("notification").definition)
consumer = KafkaConsumer(
    "pay.notifications.v1",
    bootstrap_servers=sys.argv[1],
    isolation_level="read_committed",  # say so: the default also shows what a transaction took back
    auto_offset_reset="earliest",
    consumer_timeout_ms=10_000,
)
expected: dict[int, int] = {}
for record in consumer:
    notification = fastavro.schemaless_reader(BytesIO(record.value[5:]), schema)  # 5 bytes name the schema
    seq = notification["seq"]
    if seq != expected.get(record.partition, seq):
        print(f"MISSED partition {record.partition}: expected seq {expected[record.partition]}, got {seq}")
    expected[record.partition] = seq + 1
    print(record.partition, seq, notification["severity"], notification["title"], notification["case_id"])
