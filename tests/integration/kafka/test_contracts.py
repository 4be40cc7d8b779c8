"""The contracts that several languages must keep alike: partitions, ids, amounts and Avro bytes."""

import random
import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPythonPartition
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lozenge.contracts import ids
from lozenge.contracts.card_numbers import (
    has_card_number,
    has_card_number_column,
    masked,
    masked_column,
    with_check_digit,
)
from lozenge.contracts.money import money, money_column
from lozenge.contracts.partitioner import partition_column, partition_of
from lozenge.contracts.topics import Topic
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.spark import avro
from tests.shared.contracts.card_number_texts import MASKED, UNTOUCHED
from tests.streams import AUTH, event_codec

KEYS = [f"card_{random.Random(n).getrandbits(96):024x}" for n in range(9_990)] + [
    "a", "ab", "äöü", "卡片", "🂡", " ", "0", "card", "x" * 500, "\x00",
]  # fmt: skip
PARTITIONS = 7


def test_python_and_spark_find_the_same_card_numbers(spark: SparkSession) -> None:
    chance = random.Random(7)
    drawn = ["".join(chance.choices("0123456789 -.aX", weights=[9] * 10 + [2] * 5, k=24)) for _ in range(3_000)]
    texts = [*MASKED, *UNTOUCHED, *drawn]
    frame = spark.createDataFrame([(text,) for text in texts], "text string")
    in_spark = frame.select(has_card_number_column(F.col("text")).alias("found")).collect()
    wrong = [text for text, row in zip(texts, in_spark, strict=True) if row["found"] != has_card_number(text)]
    assert not wrong
    assert any(has_card_number(text) for text in drawn)


def test_python_and_spark_mask_the_same_digits_of_card_numbers(spark: SparkSession) -> None:
    chance = random.Random(11)
    cards = [with_check_digit(f"4{chance.randrange(10**14):014d}") for _ in range(500)]
    texts = [
        *MASKED,
        *UNTOUCHED,
        *(f"of {card[:4]}-{card[4:8]} {card[8:12]} {card[12:]}, {card[::-1]}x" for card in cards),
    ]
    frame = spark.createDataFrame([(text,) for text in texts], "text string")
    in_spark = frame.select(masked_column(F.col("text")).alias("shown")).collect()
    wrong = [(t, row["shown"], masked(t)) for t, row in zip(texts, in_spark, strict=True) if row["shown"] != masked(t)]
    assert not wrong


def test_the_partition_of_ten_thousand_keys_is_the_same_in_spark_python_and_librdkafka(
    kafka: KafkaSettings, spark: SparkSession
) -> None:
    expected = {key: partition_of(key.encode(), PARTITIONS) for key in KEYS}
    frame = spark.createDataFrame([(key,) for key in KEYS], "key string")
    in_spark = frame.select("key", partition_column(F.col("key"), PARTITIONS).alias("p")).collect()
    assert {row["key"]: row["p"] for row in in_spark} == expected
    topic = f"partitions-{uuid.uuid4().hex[:8]}"
    ensure_topics(kafka, [Topic(topic, PARTITIONS)])
    delivered: dict[str, int] = {}
    producer = Producer(kafka.client(partitioner="consistent"))

    def note(_: object, message: Message) -> None:
        delivered[(message.key() or b"").decode()] = message.partition() or 0

    for key in KEYS:
        producer.produce(topic, b"", key.encode(), on_delivery=note)
        producer.poll(0)
    assert producer.flush(30) == 0
    assert delivered == expected


def test_an_id_is_the_same_uuid_in_spark_and_in_python(spark: SparkSession) -> None:
    parts = [(f"source-{n}", f"txn/{n}/ü") for n in range(1000)] + [("", ""), ("a", "bc"), ("ab", "c")]
    frame = spark.createDataFrame(parts, "a string, b string")
    rows = frame.select("a", "b", ids.uuid5_column(F.col("a"), F.col("b")).alias("id")).collect()
    assert [row["id"] for row in rows] == [ids.uuid5(row["a"], row["b"]) for row in rows]
    assert all(uuid.UUID(row["id"]).version == 5 for row in rows)


def test_an_amount_of_money_has_the_same_text_in_spark_and_in_python(spark: SparkSession) -> None:
    amounts = ["0", "12.5", "-0.005", "2.345", "1200", "99999999999999.9999"]
    pairs = [(Decimal(amount), currency) for amount in amounts for currency in ("EUR", "JPY", "KWD", "CLF", "XYZ")]
    rows = spark.createDataFrame(pairs, "amount decimal(18,4), currency string")
    texts = [row.text for row in rows.select(money_column(F.col("amount"), F.col("currency")).alias("text")).collect()]
    assert texts == [money(amount, currency) for amount, currency in pairs]


def test_an_event_has_the_same_bytes_from_spark_and_from_python(spark: SparkSession) -> None:
    codec, schema = event_codec(), AUTH.event_schema
    records = [_event(n) for n in range(500)]
    encoded = [codec.encode(record) for record in records]
    frame = spark.createDataFrame([(value,) for value in encoded], "value binary")
    again = frame.select(avro.record_or_null(F.col("value"), [schema], schema).alias("event")).select(
        avro.encode(F.col("event"), schema).alias("value")
    )
    assert [bytes(row["value"]) for row in again.collect()] == encoded
    assert [codec.decode(value) for value in encoded] == records


def test_group_offsets_with_metadata_are_seen_by_another_client(kafka: KafkaSettings) -> None:
    topic, group = f"offsets-{uuid.uuid4().hex[:8]}", f"group-{uuid.uuid4().hex[:8]}"
    ensure_topics(kafka, [Topic(topic, 1), Topic(f"{topic}-out", 1)])
    producer = Producer(kafka.client(transactional_id=f"{group}-0"))
    consumer = Consumer(kafka.client(group_id=group))
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(f"{topic}-out", b"alert")
    partitions = [TopicPartition(topic, 0, 42, metadata="7/abc/3")]
    producer.send_offsets_to_transaction(partitions, consumer.consumer_group_metadata(), 30)
    producer.commit_transaction(30)
    consumer.close()
    other = KafkaConsumer(**kafka.kafka_python(), group_id=kafka.topics.prefixed(group), enable_auto_commit=False)
    found: Any = other.committed(KafkaPythonPartition(topic, 0), metadata=True)
    other.close()
    assert (found.offset, found.metadata.rstrip("\0")) == (42, "7/abc/3")


def _event(n: int) -> dict[str, Any]:
    rng = random.Random(n)
    moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=rng.randrange(10**13))
    absent = {field.name: None for field in AUTH.fields if field.optional}
    return absent | {
        "event_id": ids.event_id("test", str(n)),
        "event_time": moment,
        "card_id": f"card_{n}",
        "account_id": rng.choice([None, f"a-{n}", "Konto ü"]),
        "merchant_id": rng.choice(["m", "händler", "商店", ""]),
        "terminal_id": f"t-{n}",
        "mcc": "5411",
        "country": "DE",
        "amount": Decimal(rng.choice([0, 1, -1, 127, 128, -128, -129, 10**17, rng.randrange(10**12)])).scaleb(-4),
        "currency": rng.choice(["EUR", "JPY", "KWD"]),
        "channel": "pos",
        "auth_result": "approved",
        "card_present": rng.choice([None, True, False]),
        "settlement_amount": rng.choice([None, Decimal(rng.randrange(10**12)).scaleb(-4)]),
        "latitude": rng.choice([None, rng.uniform(-90, 90)]),
        "raw": {"source": "test", "topic": "AUTH-JSON", "partition": n % 4, "offset": n, "timestamp": moment},
    }  # fmt: skip
