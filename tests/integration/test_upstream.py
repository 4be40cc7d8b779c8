"""The normaliser as a process of its own on a real broker: balance, stops, kills, repeats and clear failures."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPythonPartition
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lozenge import topics
from lozenge.admin import ensure_topics
from lozenge.avro import Codec
from lozenge.currencies import money, money_column
from lozenge.kafka import KafkaSettings
from lozenge.partitions import partition_of
from lozenge_upstream.position import Offsets, Position
from tests.integration.conftest import Broker
from tests.upstream.samples import PAN, flat, iso

KEY = "the-token-key-of-this-test"
RAW = (topics.RAW_JSON, topics.RAW_ISO)
BY_TERMINAL = topics.events_by("terminal")
DEAD = topics.dead_letters("upstream")
DEADLINE_SECONDS = 120.0

Place = tuple[str, int]


class Bench:
    """Raw records in, a process to normalise them, and what it has written since the bench was set up."""

    def __init__(self, broker: Broker) -> None:
        self.kafka = KafkaSettings(bootstrap=broker.bootstrap)
        ensure_topics(self.kafka, topics.platform_topics())
        self._reader = Consumer(self.kafka.client(group_id="test-upstream", enable_auto_commit=False))
        self._producer = Producer(self.kafka.client(message_max_bytes=2_000_000))
        self.start = {topic: self.ends(topic) for topic in (*RAW, topics.EVENTS, BY_TERMINAL, DEAD)}
        self.commit({topic: self.start[topic] for topic in RAW})

    def ends(self, topic: str) -> dict[str, int]:
        """The next offset of every partition."""
        places = [TopicPartition(topic, p) for p in range(topics.EVENT_PARTITIONS)]
        return {str(p.partition): self._reader.get_watermark_offsets(p, timeout=10)[1] for p in places}

    def send(self, topic: str, value: bytes | None, card: str = "card", headers: Any = None) -> None:
        """Queues one raw record; `flush` makes it so."""
        key = card.encode()
        self._producer.produce(topic, value, key, partition_of(key, topics.RAW_PARTITIONS), headers=headers)
        self._producer.poll(0)

    def flush(self) -> None:
        """Returns when the broker has every record sent."""
        assert self._producer.flush(30) == 0

    def commit(self, offsets: Offsets) -> None:
        """Moves the group, as an operator's tool would while upstream is down."""
        position = Position(self.kafka, "upstream")
        position.commit(offsets)
        position.close()

    def committed(self) -> Offsets:
        """The group's position as an independent client sees it."""
        consumer = KafkaConsumer(**self.kafka.kafka_python(), group_id="upstream", enable_auto_commit=False)
        try:
            return {
                t: {str(p): consumer.committed(KafkaPythonPartition(t, p)) for p in range(topics.RAW_PARTITIONS)}
                for t in RAW
            }
        finally:
            consumer.close()

    def done(self) -> bool:
        """Whether everything sent so far was processed."""
        return self.committed() == {topic: self.ends(topic) for topic in RAW}

    def processed(self) -> int:
        """How many raw records lie before the group's position."""
        return sum(at - self.start[t][p] for t, ends in self.committed().items() for p, at in ends.items())

    def written(self, topic: str) -> list[Any]:
        """Every record of `topic` since the set-up, by kafka-python."""
        consumer = KafkaConsumer(**self.kafka.kafka_python(), enable_auto_commit=False, consumer_timeout_ms=3000)
        try:
            places = [KafkaPythonPartition(topic, p) for p in range(topics.EVENT_PARTITIONS)]
            consumer.assign(places)
            for place in places:
                consumer.seek(place, self.start[topic][str(place.partition)])
            wanted = sum(self.ends(topic).values()) - sum(self.start[topic].values())
            return [record for _, record in zip(range(wanted), consumer, strict=False)]
        finally:
            consumer.close()

    @contextmanager
    def upstream(self, folder: Path, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
        """A running upstream, killed at the end of the block if it is still there; its words are in `stderr`."""
        log = folder / "stderr"
        env = os.environ | {
            "LOZENGE_KAFKA_BOOTSTRAP": self.kafka.bootstrap,
            "LOZENGE_UPSTREAM_TOKEN_KEY": KEY,
            "LOZENGE_UPSTREAM_TRIGGER_SECONDS": "0.2",
            **{f"LOZENGE_UPSTREAM_{name}": value for name, value in settings.items()},
        }
        with log.open("ab") as file:
            process = subprocess.Popen([sys.executable, "-m", "lozenge_upstream"], env=env, stderr=file)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def bench(broker: Broker) -> Bench:
    return Bench(broker)


def test_every_raw_record_becomes_an_event_or_a_dead_letter(bench: Bench, tmp_path: Path) -> None:
    good = [flat(txn_id=f"j-{n}", pan=int(PAN) + n % 9, terminal=f"x-{n % 5}") for n in range(200)]
    big = [flat(txn_id="big", note="x" * 1_000_000), b"\x7b" * 1_000_000]
    bad = [None, b"", b"\xff", good[0][:-9], flat(merchant=None, amount=[1]), flat(ts="2999-01-01T00:00:00Z")]
    for n, value in enumerate([*good, *big, *bad]):
        bench.send(topics.RAW_JSON, value, f"card-{n}", [("origin", b"\x00\xff")])
    for n in range(50):
        bench.send(topics.RAW_ISO, iso(de37=f"i-{n}", de7="0101000000"), f"card-{n}")
    bench.flush()

    with bench.upstream(tmp_path) as process:
        _wait(bench.done, "every record to be processed", process)
        _wait(lambda: _samples(bench).get("lozenge_records_total") == 258, "the metrics of it", process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(40) == 0

    events, copies, dead = (bench.written(topic) for topic in (topics.EVENTS, BY_TERMINAL, DEAD))
    codec = Codec.of("event")
    decoded = [codec.decode(record.value) for record in events]
    assert len({event["event_id"] for event in decoded}) == len(events) == 200 + 1 + 50
    assert Counter(event["raw"]["source"] for event in decoded) == {"auth_json": 201, "auth_iso8583": 50}
    assert Counter(r.value for r in events) == Counter(r.value for r in copies)
    for record, key in [(r, "card_id") for r in events] + [(r, "terminal_id") for r in copies]:
        assert record.key.decode() == codec.decode(record.value)[key]
        assert record.partition == partition_of(record.key, topics.EVENT_PARTITIONS)

    for records in (events, copies):
        for partition in range(topics.EVENT_PARTITIONS):
            times = [codec.decode(r.value)["raw"]["timestamp"] for r in records if r.partition == partition]
            assert times == sorted(times), "a backlog must come out as it came in"

    assert Counter(record.value for record in dead) == Counter([big[1], *bad])
    for record in dead:
        headers = dict(record.headers)
        assert headers["origin"] == b"\x00\xff"
        assert headers["__connect.errors.partition"] == str(record.partition).encode()
    reasons = {dict(record.headers)["__connect.errors.exception.message"].decode() for record in dead}
    assert reasons == {
        *("tombstone", "empty", "invalid-utf8", "invalid-json"),
        *("missing:merchant_id, type:amount", "future:event_time"),
    }
    assert _samples(bench)["lozenge_emitted_total"] == 502
    log = (tmp_path / "stderr").read_text()
    assert '"missing:merchant_id, type:amount": 1' in log
    assert PAN[:12] not in log
    assert KEY not in log


def test_a_stop_repeats_nothing_and_a_kill_loses_nothing(bench: Bench, tmp_path: Path) -> None:
    count = 8_000
    for n in range(count):
        bench.send(topics.RAW_JSON, flat(txn_id=f"s-{n}", pan=int(PAN) + n % 50), f"card-{n % 50}")
    bench.flush()

    with bench.upstream(tmp_path, MAX_OFFSETS="400") as process:
        _wait(lambda: bench.processed() >= 800, "some batches", process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(40) == 0
    stopped = bench.processed()
    assert stopped < count, "it had nothing left to do when it was stopped"
    assert len(bench.written(topics.EVENTS)) == len(bench.written(BY_TERMINAL)) == stopped

    with bench.upstream(tmp_path, MAX_OFFSETS="400") as process:
        _wait(lambda: bench.processed() >= stopped + 800, "some more batches", process)
        process.kill()
    with bench.upstream(tmp_path) as process:
        _wait(bench.done, "the rest", process)
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 0

    for topic in (topics.EVENTS, BY_TERMINAL):
        records = bench.written(topic)
        distinct = {(r.partition, r.key, r.value, tuple(r.headers)) for r in records}
        assert len(distinct) == count, "a repeat must be byte for byte the record that it repeats"
        assert len(records) - count <= 2 * 400


def test_offsets_that_kafka_no_longer_has_end_it_with_a_sentence(bench: Bench, tmp_path: Path) -> None:
    beyond = {p: at + 1000 for p, at in bench.start[topics.RAW_JSON].items()}
    bench.commit({topics.RAW_JSON: beyond})
    with bench.upstream(tmp_path) as process:
        assert process.wait(DEADLINE_SECONDS) == 1
    last = json.loads((tmp_path / "stderr").read_text().splitlines()[-1])
    assert last["event"].startswith("normalising: the query failed: ")
    assert "last committed offsets" in last["hint"]
    assert KEY not in (tmp_path / "stderr").read_text()


def test_no_broker(tmp_path: Path, bench: Bench) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        bench.kafka = KafkaSettings(bootstrap=f"127.0.0.1:{closed.getsockname()[1]}")
        with bench.upstream(tmp_path) as process:
            assert process.wait(60) == 3
    lines = (tmp_path / "stderr").read_text().splitlines()
    assert "no Kafka broker answers" in json.loads(lines[-1])["event"]
    assert not [line for line in lines if "Traceback" in line]


def test_a_mapping_whose_topic_is_not_there(tmp_path: Path, bench: Bench) -> None:
    packaged = Path(__file__).parents[2] / "upstream/lozenge_upstream/mappings/auth_json.toml"
    text = packaged.read_text().replace('"auth_json"', '"other"').replace('"AUTH-JSON"', '"NOWHERE"')
    (tmp_path / "other.toml").write_text(text)
    with bench.upstream(tmp_path, MAPPINGS=str(tmp_path)) as process:
        assert process.wait(60) == 1
    assert "there is no NOWHERE (source other)" in (tmp_path / "stderr").read_text()


def test_money_reads_the_same_from_spark(spark: SparkSession) -> None:
    amounts = ["0", "12.5", "-0.005", "2.345", "1200", "99999999999999.9999"]
    pairs = [(Decimal(amount), currency) for amount in amounts for currency in ("EUR", "JPY", "KWD", "CLF", "XYZ")]
    rows = spark.createDataFrame(pairs, "amount decimal(18,4), currency string")
    texts = [row.text for row in rows.select(money_column(F.col("amount"), F.col("currency")).alias("text")).collect()]
    assert texts == [money(amount, currency) for amount, currency in pairs]


def _samples(bench: Bench) -> dict[str, float]:
    """Upstream's newest metrics."""
    consumer = KafkaConsumer(**bench.kafka.kafka_python(), enable_auto_commit=False, consumer_timeout_ms=3000)
    place = KafkaPythonPartition(topics.METRICS, 0)
    newest: dict[str, float] = {}
    try:
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        end = consumer.end_offsets([place])[place]  # it grows while we read
        for record in consumer if end else ():
            if record.key.startswith(b"upstream/"):
                newest = json.loads(record.value)["samples"]
            if record.offset + 1 >= end:
                break
    finally:
        consumer.close()
    return newest


def _wait(condition: Callable[[], bool], what: str, process: subprocess.Popen[bytes] | None = None) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert process is None or process.poll() is None, f"upstream ended with {process.poll()}"
        assert time.monotonic() < deadline, f"waited {DEADLINE_SECONDS:g} s for {what}"
        time.sleep(0.1)
