"""Upstream in Real-Time Mode: each record at once and once, whatever ends it and in whatever mode it continues."""

import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lozenge.contracts.avro import Codec
from lozenge.contracts.dead_letters import RAW_POSITION, SOURCE_OFFSET
from lozenge.kafka.settings import KafkaSettings
from tests.integration.upstream.upstream_bench import Bench, wait
from tests.upstream.samples import PAN, flat

pytestmark = pytest.mark.integration

REALTIME = {"MODE": "realtime", "COMMIT_SECONDS": "300", "SHORT_BATCHES": "0"}


@pytest.fixture
def bench(kafka: KafkaSettings) -> Bench:
    return Bench(kafka)


def test_records_come_out_at_once_and_once_through_a_kill_a_stop_and_another_mode(bench: Bench, tmp_path: Path) -> None:
    start = bench.committed()
    sent = 0
    for end in (signal.SIGKILL, signal.SIGTERM):
        with bench.upstream(tmp_path, **REALTIME) as process:
            sent += send(bench, sent)
            older = sent - 800
            wait(lambda older=older: len(bench.written(bench.topics.events)) > older, "events of the newest", process)  # type: ignore[misc]
            if end is signal.SIGTERM:
                _says_how_far_it_has_read(bench, sent, process)
            process.send_signal(end)
            assert process.wait(60) == (0 if end is signal.SIGTERM else -end)
    assert bench.committed() == start, "it was to end before its first commit"
    with bench.upstream(tmp_path, MAX_OFFSETS="200", TRIGGER_SECONDS="20") as process:
        wait(lambda: bench.committed() != start, "a commit with written records after it", process)
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    assert not bench.done(), "it was to end after its first batch"
    with bench.upstream(tmp_path) as process:  # batch by batch
        wait(bench.done, "the rest", process)
        sent += send(bench, sent)
        wait(bench.done, "what came after", process)
    positions = Counter(raw_positions(bench))
    for topic in (bench.topics.events, bench.by_terminal):
        assert set((Counter(places_of_events(bench, topic)) + positions).values()) == {1}
        assert Counter(places_of_events(bench, topic)).total() + positions.total() == sent


def _says_how_far_it_has_read(bench: Bench, sent: int, process: "subprocess.Popen[bytes]") -> None:
    """Waits until the newest instance has said so, long before its first commit."""
    wait(lambda: bench.samples(-1)["lozenge_offsets_begun_total"] == sent, "what it has read", process)
    wait(lambda: bench.samples(-1)["lozenge_lag_offsets"] == 0, "its lag", process)
    assert bench.samples(-1)["lozenge_offsets_committed_total"] == 0


def test_the_group_moves_with_a_batch_and_the_first_batches_are_short(bench: Bench, tmp_path: Path) -> None:
    # so many that they are short still when a busy machine has come to its first records
    with bench.upstream(tmp_path, MODE="realtime", COMMIT_SECONDS="3600", SHORT_BATCHES="100") as process:
        send(bench, 1_000_000)
        wait(bench.done, "the commit", process)
        wait(lambda: bench.samples()["lozenge_emitted_total"] == 1_900, "its metrics", process)
        samples = bench.samples()
    assert samples["lozenge_offsets_committed_total"] == 1_000
    assert samples["lozenge_latency_seconds_count"] == 1_950
    assert samples["lozenge_dead_letters_total{stage=decode}"] == 50


def send(bench: Bench, first: int) -> int:
    """A thousand raw records of fifty cards, each twentieth of them broken and with a wrong header of its position."""
    lie = [(SOURCE_OFFSET, b"999999999"), (RAW_POSITION, b"AUTH-JSON/0/999999999")]
    for n in range(first, first + 1_000):
        good = n % 20 != 0
        value = flat(txn_id=f"rt-{n}", pan=int(PAN) + n % 50) if good else b"{"
        bench.send(bench.topics.raw_json, value, f"card-{n % 50}", headers=None if good else lie)
    bench.flush()
    return 1_000


def places_of_events(bench: Bench, topic: str) -> Iterator[Any]:
    """Partition and offset of the raw record of each event."""
    decode = Codec.of("event").decode
    return ((raw["partition"], raw["offset"]) for raw in (decode(r.value)["raw"] for r in bench.written(topic)))


def raw_positions(bench: Bench) -> Iterator[Any]:
    """Partition and offset of the raw record of each dead letter."""
    for dead_letter in bench.written(bench.dead):
        _, partition, offset = dict(dead_letter.headers)[RAW_POSITION].decode().split("/")
        yield int(partition), int(offset)
