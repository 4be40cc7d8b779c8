"""The reference experiment: instances of upstream join, stop and die; who counts what was processed twice is outside.

An instance's own counters come through Kafka. How many records came out, and how many different ones, is counted by
kafka-python, which reads the committed output and knows nothing of offsets.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lozenge.kafka.settings import KafkaSettings
from tests.integration.upstream.upstream_bench import DEADLINE_SECONDS, Bench, wait
from tests.integration.upstream.upstream_child import HELD_UP, INSIDE
from tests.upstream.samples import PAN, flat

RECORDS = int(os.environ.get("LOZENGE_TEST_UPSTREAM_RECORDS", "20000"))
"""The short form; 200,000 make the long one."""
BATCH = RECORDS // 10
BEGUN, COMMITTED = "lozenge_offsets_begun_total", "lozenge_offsets_committed_total"


class Feed:
    """Numbered raw records of many cards."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.sent = 0

    def send(self, count: int) -> None:
        """The next `count` records; returns when the broker has them."""
        for n in range(self.sent, self.sent + count):
            self._bench.send(
                self._bench.topics.raw_json, flat(txn_id=f"r-{n}", pan=int(PAN) + n % 500), f"card-{n % 500}"
            )
        self._bench.flush()
        self.sent += count

    @contextmanager
    def trickling(self) -> Iterator[None]:
        """Sends some records all the time within the block."""
        ends = threading.Event()

        def trickle() -> None:
            while not ends.wait(0.1):
                self.send(20)

        thread = threading.Thread(target=trickle)
        thread.start()
        try:
            yield
        finally:
            ends.set()
            thread.join()


@pytest.fixture
def bench(kafka: KafkaSettings) -> Bench:
    return Bench(kafka)


def test_instances_that_come_and_go_process_nothing_twice_and_those_that_fail_at_most_their_batch(
    bench: Bench, tmp_path: Path
) -> None:
    feed = Feed(bench)
    options = {"REKEYS": "[]", "MAX_OFFSETS": str(BATCH), "STOP_SECONDS": "250"}
    with bench.upstream(tmp_path, **options) as first:
        with feed.trickling():
            wait(lambda: bench.samples(0)[COMMITTED] > 0, "the first instance to commit", first)
            with bench.upstream(tmp_path, **options) as second:
                wait(lambda: bench.samples(1)[COMMITTED] > 0, "the second instance to commit", second)
                second.send_signal(signal.SIGTERM)
                assert second.wait(DEADLINE_SECONDS) == 0
        wait(bench.done, "everything to be processed by the first", first)
        samples = bench.samples()
        assert samples[BEGUN] == samples[COMMITTED] == feed.sent, "a stop made somebody process records twice"

        with feed.trickling(), bench.upstream(tmp_path, INSIDE, **options) as killed:
            assert killed.wait(DEADLINE_SECONDS) == -signal.SIGKILL
        feed.send(max(1, (RECORDS - feed.sent) // 2))
        wait(bench.done, "the first instance to take over from one that was killed in its transaction", first)

        with bench.upstream(tmp_path, HELD_UP, **options) as held_up:
            with feed.trickling():
                wait(lambda: _is_stopped(held_up.pid), "an instance to be held up", held_up)
            feed.send(max(1, RECORDS - feed.sent))
            wait(bench.done, "the first instance to take over from one that is held up", first)
            os.killpg(held_up.pid, signal.SIGCONT)
            assert held_up.wait(DEADLINE_SECONDS) == 1
        samples = bench.samples()
    assert "other instances own its partitions now" in (tmp_path / "stderr").read_text()

    ids = bench.ids(bench.topics.events)
    assert len(ids) == feed.sent
    assert ids.total() == samples[COMMITTED] == feed.sent, "what was not committed came out, or was counted"
    assert 0 < samples[BEGUN] - len(ids) <= 2 * BATCH


def _is_stopped(pid: int) -> bool:
    """Whether a signal has stopped the process."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"
