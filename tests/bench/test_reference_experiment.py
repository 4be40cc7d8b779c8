"""The reference experiment at full size: a second instance of upstream comes and goes while a million records wait."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lozenge.contracts.topics import Topic
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from tests.bench import streams
from tests.bench.harness.platform import TOPICS
from tests.integration.harness import group_offsets
from tests.integration.upstream.upstream_bench import Bench, wait
from tests.streams import RAW_JSON
from tests.upstream.samples import PAN, flat

RECORDS = int(os.environ.get("LOZENGE_BENCH_RECORDS", "1000000"))
BATCH = 20_000
BEGUN, COMMITTED = "lozenge_offsets_begun_total", "lozenge_offsets_committed_total"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with EmbeddedBroker(tmp_path / "broker", heap_mb=512) as broker:
        bench = Bench(KafkaSettings(bootstrap=broker.bootstrap))
        for n in range(RECORDS):
            bench.send(TOPICS.prefixed(RAW_JSON), flat(txn_id=f"r-{n}", pan=int(PAN) + n % 5000), f"card-{n % 5000}")
        bench.flush()
        yield bench


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_an_instance_joins_and_is(end: str, bench: Bench, tmp_path: Path) -> None:
    options = {"REKEYS": "[]", "MAX_OFFSETS": str(BATCH), "STOP_SECONDS": "250"}
    logs = [tmp_path / "first", tmp_path / "second"]
    for log in logs:
        log.mkdir()
    with bench.upstream(logs[0], **options) as first:
        wait(lambda: bench.samples(0)[COMMITTED] > 0, "the first instance to commit", first)
        with bench.upstream(logs[1], **options) as second:
            wait(lambda: bench.samples(1)[COMMITTED] > 0, "the second instance to commit", second)
            runs, ended = _runs(logs[0]), time.monotonic()
            if end == "killed":
                wait(lambda: bench.samples(1)[BEGUN] > bench.samples(1)[COMMITTED], "a batch to be hit", second)
                second.kill()
            else:
                second.terminate()
            wait(lambda: _runs(logs[0]) > runs, "its partitions to move", first)
            moved = time.monotonic() - ended
        wait(bench.done, "everything to be processed", first)
        samples = bench.samples()
    ids = bench.ids(TOPICS.events("auth"))
    print(
        f"\n{RECORDS:,} records in 4 partitions, the second instance was {end}; its partitions moved in {moved:.1f} s"
    )
    print(f"  came out {ids.total():,}, different {len(ids):,}, said to be committed {samples[COMMITTED]:,.0f}")
    print(f"  records processed twice {samples[BEGUN] - len(ids):,.0f}, written twice {ids.total() - len(ids):,}")
    assert len(ids) == ids.total() == RECORDS
    assert samples[BEGUN] - len(ids) <= (BATCH if end == "killed" else 0)


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_an_instance_of_kafka_streams_joins_and_is(end: str, bench: Bench, tmp_path: Path) -> None:
    """The same records on the same broker, through what users would pick instead."""
    ensure_topics(bench.kafka, [Topic(streams.TO, streams.PARTITIONS)])
    logs = [tmp_path / "one", tmp_path / "two"]
    for log in logs:
        log.mkdir()
    with streams.converter(bench.kafka, TOPICS.prefixed(RAW_JSON), logs[0]) as first:
        wait(lambda: first.entered > 0, "the first instance to process", first.process)
        with streams.converter(bench.kafka, TOPICS.prefixed(RAW_JSON), logs[1]) as second:
            wait(lambda: second.entered > RECORDS // 50, "the second instance to process", second.process)
            second.process.send_signal(signal.SIGKILL if end == "killed" else signal.SIGTERM)
            second.process.wait()
        wait(lambda: _through(bench), "everything to be processed", first.process)
    ids, entered = streams.ids(bench.kafka), first.entered + second.entered
    print(f"\nKafka Streams, {RECORDS:,} records in 4 partitions, the second instance was {end}")
    print(f"  came out {ids.total():,}, different {len(ids):,}")
    print(f"  records processed twice {entered - len(ids):,}, written twice {ids.total() - len(ids):,}")
    assert len(ids) == RECORDS


def _through(bench: Bench) -> bool:
    """Whether Kafka Streams has committed all raw records."""
    ends = bench.ends(TOPICS.prefixed(RAW_JSON))
    done = group_offsets(bench.kafka, "streams-converter", TOPICS.prefixed(RAW_JSON))
    return all(done.get(int(p), (0, ""))[0] >= end for p, end in ends.items())


def _runs(log: Path) -> int:
    """How often an instance was given partitions."""
    return (log / "stderr").read_text().count('"query started"')
