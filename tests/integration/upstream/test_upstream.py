"""The normaliser as a process of its own on a real broker: balance, stops, kills, repeats and clear failures."""

import json
import signal
import socket
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lozenge.contracts.avro import Codec
from lozenge.contracts.money import money, money_column
from lozenge.contracts.partitioner import partition_of
from lozenge.kafka.settings import KafkaSettings
from tests.integration.upstream.upstream_bench import DEADLINE_SECONDS, KEY, Bench, wait
from tests.integration.upstream.upstream_child import DEATHS, SLOW
from tests.upstream.samples import PAN, flat, iso


@pytest.fixture
def bench(kafka: KafkaSettings) -> Bench:
    return Bench(kafka)


def test_every_raw_record_becomes_an_event_or_a_dead_letter(bench: Bench, tmp_path: Path) -> None:
    good = [flat(txn_id=f"j-{n}", pan=int(PAN) + n % 9, terminal=f"x-{n % 5}") for n in range(200)]
    big = [flat(txn_id="big", note="x" * 1_000_000), b"\x7b" * 1_000_000]
    bad = [None, b"", b"\xff", good[0][:-9], flat(merchant=None, amount=[1]), flat(ts="2999-01-01T00:00:00Z")]
    for n, value in enumerate([*good, *big, *bad]):
        bench.send(bench.topics.raw_json, value, f"card-{n}", [("origin", b"\x00\xff")])
    for n in range(50):
        bench.send(bench.topics.raw_iso, iso(de37=f"i-{n}", de7="0101000000"), f"card-{n}")
    bench.flush()

    with bench.upstream(tmp_path) as process:
        wait(bench.done, "every record to be processed", process)
        wait(lambda: bench.samples().get("lozenge_records_total") == 258, "the metrics of it", process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_SECONDS) == 0

    events, copies, dead = (bench.written(topic) for topic in (bench.topics.events, bench.by_terminal, bench.dead))
    codec = Codec.of("event")
    decoded = [codec.decode(record.value) for record in events]
    assert len({event["event_id"] for event in decoded}) == len(events) == 200 + 1 + 50
    assert Counter(event["raw"]["source"] for event in decoded) == {"auth_json": 201, "auth_iso8583": 50}
    assert Counter(r.value for r in events) == Counter(r.value for r in copies)
    for record, key in [(r, "card_id") for r in events] + [(r, "terminal_id") for r in copies]:
        assert record.key.decode() == codec.decode(record.value)[key]
        assert record.partition == partition_of(record.key, bench.topics.partitions)

    for records in (events, copies):
        for partition in range(bench.topics.partitions):
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
    assert bench.samples()["lozenge_emitted_total"] == 502
    log = (tmp_path / "stderr").read_text()
    assert '"missing:merchant_id, type:amount": 1' in log
    assert PAN[:12] not in log
    assert KEY not in log


def test_kills_and_a_stop_in_the_middle_of_a_batch_lose_nothing_and_repeat_nothing(
    bench: Bench, tmp_path: Path
) -> None:
    count, batch = 8_000, 400
    for n in range(count):
        value = flat(txn_id=f"k-{n}", pan=int(PAN) + n % 50) if n % 20 else b"{"
        bench.send(bench.topics.raw_json, value, f"card-{n % 50}")
    bench.flush()

    for point in DEATHS:
        before = bench.processed()
        with bench.upstream(tmp_path, point, MAX_OFFSETS=str(batch)) as process:
            assert process.wait(DEADLINE_SECONDS) == -signal.SIGKILL
        assert before < bench.processed() < count, "it had to die with a batch behind it and one before it"
    before = bench.processed()
    with bench.upstream(tmp_path, SLOW, MAX_OFFSETS=str(batch), STOP_SECONDS="0.1") as process:
        wait(lambda: bench.processed() > before and bench.open(), "a batch that is being written", process)
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_SECONDS) == 0
    assert "batch aborted" in (tmp_path / "stderr").read_text()
    assert not bench.open(), "readers would wait for a transaction that nobody ends"

    done = bench.committed()[bench.topics.raw_json]
    read = {(int(p), offset) for p, end in done.items() for offset in range(bench.start[bench.topics.raw_json][p], end)}
    dead_letters = [_origin(dead_letter) for dead_letter in bench.written(bench.dead)]
    for topic in (bench.topics.events, bench.by_terminal):
        raw = (Codec.of("event").decode(record.value)["raw"] for record in bench.written(topic))
        assert Counter([*dead_letters, *((r["partition"], r["offset"]) for r in raw)]) == Counter(read)


def _origin(dead_letter: Any) -> tuple[int, int]:
    """Partition and offset of the raw record that a dead letter speaks of."""
    headers = dict(dead_letter.headers)
    return int(headers["__connect.errors.partition"]), int(headers["__connect.errors.offset"])


def test_expired_offsets_end_upstream_with_one_sentence(bench: Bench, tmp_path: Path) -> None:
    beyond = {p: at + 1000 for p, at in bench.start[bench.topics.raw_json].items()}
    bench.commit({bench.topics.raw_json: beyond})
    with bench.upstream(tmp_path) as process:
        assert process.wait(DEADLINE_SECONDS) == 1
    last = json.loads((tmp_path / "stderr").read_text().splitlines()[-1])
    assert last["event"].startswith("normalising: the query failed: ")
    assert "last committed offsets" in last["hint"]
    assert KEY not in (tmp_path / "stderr").read_text()


def test_without_a_broker_upstream_ends_with_one_sentence(tmp_path: Path, bench: Bench) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        bench.kafka = KafkaSettings(bootstrap=f"127.0.0.1:{closed.getsockname()[1]}")
        with bench.upstream(tmp_path) as process:
            assert process.wait(DEADLINE_SECONDS) == 3
    lines = (tmp_path / "stderr").read_text().splitlines()
    assert "no Kafka broker answers" in json.loads(lines[-1])["event"]
    assert not [line for line in lines if "Traceback" in line]


def test_a_mapping_without_its_topic_ends_upstream_with_one_sentence(tmp_path: Path, bench: Bench) -> None:
    packaged = Path(__file__).parents[3] / "upstream/lozenge_upstream/mappings/auth_json.toml"
    text = packaged.read_text().replace('"auth_json"', '"other"').replace('"AUTH-JSON"', '"NOWHERE"')
    (tmp_path / "other.toml").write_text(text)
    with bench.upstream(tmp_path, MAPPINGS=str(tmp_path)) as process:
        assert process.wait(DEADLINE_SECONDS) == 1
    assert f"there is no {bench.topics.prefixed('NOWHERE')} (source other)" in (tmp_path / "stderr").read_text()


def test_money_reads_the_same_from_spark(spark: SparkSession) -> None:
    amounts = ["0", "12.5", "-0.005", "2.345", "1200", "99999999999999.9999"]
    pairs = [(Decimal(amount), currency) for amount in amounts for currency in ("EUR", "JPY", "KWD", "CLF", "XYZ")]
    rows = spark.createDataFrame(pairs, "amount decimal(18,4), currency string")
    texts = [row.text for row in rows.select(money_column(F.col("amount"), F.col("currency")).alias("text")).collect()]
    assert texts == [money(amount, currency) for amount, currency in pairs]
