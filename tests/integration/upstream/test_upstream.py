"""Processes of upstream one after another and next to each other: whatever ends them, each record comes out once.

What a crash leaves at each point of a transaction, and how instances share partitions, is tested on the parts.
"""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lozenge.kafka.settings import KafkaSettings
from tests.integration import clients
from tests.integration.upstream.upstream_bench import (
    DEADLINE_SECONDS,
    KEY,
    Bench,
    assert_each_came_out_once,
    send_thousand,
    wait,
)
from tests.streams import RAW_JSON
from tests.upstream.samples import PAN

BATCH = 1_000
MICRO_BATCH = {"REKEYS": "[]", "MAX_OFFSETS": str(BATCH)}
REALTIME = {"REKEYS": "[]", "MODE": "realtime", "COMMIT_SECONDS": "300", "SHORT_BATCHES": "0"}
BEGUN, COMMITTED = "lozenge_offsets_begun_total", "lozenge_offsets_committed_total"


class Scene:
    """The processes of one test and what was sent to them."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench, self.log, self._folder = bench, folder / "stderr", folder
        self.sent = 0

    def send(self) -> None:
        """A thousand more raw records."""
        send_thousand(self.bench, self.sent)
        self.sent += 1_000

    @contextmanager
    def realtime(self) -> Iterator["subprocess.Popen[bytes]"]:
        """A process in Real-Time Mode that has written some of a thousand more records."""
        with self.bench.upstream(self._folder, **REALTIME) as process:
            self.send()
            older = self.sent - 800
            wait(
                lambda: len(self.bench.written(self.bench.topics.events("auth"))) > older,
                "events of the newest",
                process,
            )
            yield process

    def counted(self, name: str) -> float:
        """The sum of a counter over the instances in micro-batches."""
        return sum(self.bench.samples(instance)[name] for instance in (-2, -1))


@pytest.mark.nightly
def test_each_record_comes_out_once_through_kills_a_stop_another_mode_and_expired_offsets(
    bench: Bench, kafka: KafkaSettings, tmp_path: Path
) -> None:
    scene, start = Scene(bench, tmp_path), bench.committed()
    with scene.realtime() as process:
        process.kill()
        process.wait(DEADLINE_SECONDS)
    with scene.realtime() as process:
        wait(lambda: bench.samples(-1)[BEGUN] == scene.sent, "what it has read, long before its first commit", process)
        wait(lambda: bench.samples(-1).get("lozenge_lag_offsets") == 0, "its lag", process)
        assert bench.samples(-1)[COMMITTED] == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_SECONDS) == 0
    assert bench.committed() == start, "both were to end before their first commit"

    dies = tmp_path / "dies"
    with bench.upstream(tmp_path, **MICRO_BATCH) as first, bench.upstream(tmp_path, str(dies), **MICRO_BATCH) as second:
        for number, process in ((-2, first), (-1, second)):
            wait(lambda number=number: COMMITTED in bench.samples(number), "both to start", process)  # type: ignore[misc]
        _process_with_both(scene, first, second)
        assert scene.counted(BEGUN) == scene.counted(COMMITTED) == scene.sent, "a join made somebody process twice"

        dies.touch()
        scene.send()
        assert second.wait(DEADLINE_SECONDS) == -signal.SIGKILL
        assert bench.open(), "it was to die inside its transaction"
        wait(bench.done, "the first instance to process what is left", first)
        wait(lambda: scene.counted(COMMITTED) == scene.sent, "the metrics of it", first)
        assert 0 < scene.counted(BEGUN) - scene.sent <= BATCH
        assert_each_came_out_once(bench, scene.sent, [bench.topics.events("auth")])

        os.killpg(first.pid, signal.SIGSTOP)
        scene.send()
        clients.trim(
            kafka,
            bench.topics.prefixed(RAW_JSON),
            {int(p): at for p, at in bench.ends(bench.topics.prefixed(RAW_JSON)).items()},
        )
        os.killpg(first.pid, signal.SIGCONT)
        assert first.wait(DEADLINE_SECONDS) == 1
    log = scene.log.read_text()
    last = json.loads(log.splitlines()[-1])
    assert last["event"].startswith("normalising: raw records to read next are gone: ")
    assert "lozenge offsets upstream" in last["hint"]
    assert "open transactions of departed instances aborted" in log
    assert PAN[:12] not in log
    assert KEY not in log


def _process_with_both(scene: Scene, *processes: "subprocess.Popen[bytes]") -> None:
    """Returns once both instances in micro-batches have partitions, and everything sent is processed."""

    def both() -> bool:
        scene.send()
        wait(scene.bench.done, "everything to be processed", processes[0])
        return all(scene.bench.samples(instance)[COMMITTED] > 0 for instance in (-2, -1))

    wait(both, "both instances to commit", processes[1])
    wait(lambda: scene.counted(COMMITTED) == scene.sent, "the metrics of all", processes[0])
