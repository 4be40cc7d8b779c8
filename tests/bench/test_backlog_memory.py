"""What a job takes in memory while it drains a backlog, over the size of the backlog: it should not matter.

`make bench ARGS="-k memory"`: prints for each kind of detector the peak of resident memory over its process tree, with
the resources that it declares, for a small and a large backlog, and their ratio. `LOZENGE_BACKLOG` is the large one.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

from lozenge import topics
from lozenge.admin import ensure_topics
from lozenge.kafka import KafkaSettings
from lozenge_deploy.broker import EmbeddedBroker
from tests.bench.backlog import produce
from tests.integration.harness import group_offsets

SMALL, LARGE = 200_000, int(os.environ.get("LOZENGE_BACKLOG", "2000000"))
DETECTORS = Path(__file__).parents[2] / "detectors"
NAMES = ("large_amount", "card_velocity", "duplicate_charge")
SAMPLE_SECONDS = 0.2


def test_memory_over_the_size_of_the_backlog(tmp_path: Path) -> None:
    peaks = {size: _peaks(size, tmp_path / str(size)) for size in (SMALL, LARGE)}
    print(f"peak of resident memory, backlog of {SMALL:,} and of {LARGE:,} events")
    for name in NAMES:
        (small, slow), (large, quick) = peaks[SMALL][name], peaks[LARGE][name]
        print(
            f"  {name:24} {small / 1e6:6.0f} MB {large / 1e6:6.0f} MB ({large / small:.2f}); "
            f"{SMALL / slow:,.0f} and {LARGE / quick:,.0f} events/s with its start"
        )


def _peaks(size: int, folder: Path) -> dict[str, tuple[int, float]]:
    """Peak in bytes and seconds of each detector that drains `size` events, one after the other."""
    folder.mkdir()
    with EmbeddedBroker(folder / "broker", heap_mb=512) as broker:
        kafka = KafkaSettings(bootstrap=broker.bootstrap)
        ensure_topics(kafka, [*topics.platform_topics(), *(t for n in NAMES for t in topics.detector_topics(n))])
        produce(kafka, size)
        return {name: _peak(kafka, name, size, folder) for name in NAMES}


def _peak(kafka: KafkaSettings, name: str, size: int, folder: Path) -> tuple[int, float]:
    environment = os.environ | {"LOZENGE_KAFKA_BOOTSTRAP": kafka.bootstrap, "LOZENGE_JOB_WORK": str(folder)}
    command = [sys.executable, "-m", "lozenge.job", f"{DETECTORS / name}{os.sep}"]
    began, peak = time.monotonic(), 0
    with (folder / f"{name}.log").open("wb") as log:
        job = subprocess.Popen(command, env=environment, stderr=log, process_group=0)
    try:
        looked = began
        while True:
            peak = max(peak, _resident(job.pid))
            assert job.poll() is None, (folder / f"{name}.log").read_text()
            if time.monotonic() - looked > 1:
                looked = time.monotonic()
                if sum(offset for offset, _ in group_offsets(kafka, name).values()) == size:
                    print(f"\n{name}, {size:,} events: {peak / 1e6:.0f} MB, {looked - began:.0f} s", flush=True)
                    return peak, looked - began
            time.sleep(SAMPLE_SECONDS)
    finally:
        job.terminate()
        job.wait(60)


def _resident(pid: int) -> int:
    total = 0
    for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
        try:
            total += process.memory_info().rss
        except psutil.Error:  # it has just ended
            continue
    return total
