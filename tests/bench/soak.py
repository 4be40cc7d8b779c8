"""What the test of hot deployment measures with: known traffic, a reader of all alerts, a watcher of all jobs."""

import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition

from lozenge.contracts.avro import Codec
from lozenge.contracts.partitioner import partition_of
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.job_status import JobStatus
from lozenge_deploy.supervision.job_process import job_processes
from tests.bench.harness.platform import TOPICS
from tests.streams import event_codec

CARDS = 200
LARGE, SMALL = Decimal(900), Decimal(10)
SAMPLE_SECONDS = 0.1


class Traffic(threading.Thread):
    """`rate` canonical events a second; every fifth is large, and every fifth of a card is in another country.

    `large` and `moved` are the ids on which a rule over amounts and a fold over countries should raise an alert.
    """

    def __init__(self, kafka: KafkaSettings, rate: int) -> None:
        super().__init__(name="traffic", daemon=True)
        self._producer, self.codec = Producer(kafka.client(linger_ms=2)), event_codec()
        self._rate, self._ended = rate, threading.Event()
        self.sent_at: dict[str, float] = {}
        self.large: set[str] = set()
        self.moved: set[str] = set()

    def run(self) -> None:
        began, number = time.monotonic(), 0
        while not self._ended.wait(0.01):
            for n in range(number, int((time.monotonic() - began) * self._rate)):
                self._send(n)
                number = n + 1
            self._producer.poll(0)

    def end(self) -> None:
        """Stops it; all that was sent is in the topic then."""
        self._ended.set()
        self.join()
        assert self._producer.flush(30) == 0

    def _send(self, n: int) -> None:
        turn, card = divmod(n, CARDS)
        now, key, event_id = datetime.now(UTC), f"card-{card}", f"soak-{n}"
        large, moves = n % 5 == 0, (turn + card) % 5 == 0
        country = ("DE", "FR")[((turn + card) // 5) % 2]
        if large:
            self.large.add(event_id)
        if moves and turn > 0:
            self.moved.add(event_id)
        event = {
            "event_id": event_id, "event_time": now, "card_id": key, "account_id": None, "merchant_id": "m",
            "terminal_id": "t", "mcc": "5411", "country": country, "amount": LARGE if large else SMALL,
            "currency": "EUR", "channel": "pos", "auth_result": "approved",
            "raw": {"source": "soak", "topic": "AUTH-JSON", "partition": 0, "offset": n, "timestamp": now},
        }  # fmt: skip
        self.sent_at[event_id] = time.time()
        partition = partition_of(key.encode(), TOPICS.partitions)
        self._producer.produce(TOPICS.events("auth"), self.codec.encode(event), key.encode(), partition)


@dataclass(frozen=True)
class ReceivedAlert:
    """An alert as it was read, at Unix time `at`, `latency` seconds after its event was sent."""

    event_id: str
    at: float
    latency: float
    release: str


class Alerts(threading.Thread):
    """Reads every committed alert of `detectors` from the beginning on."""

    def __init__(self, kafka: KafkaSettings, traffic: Traffic, detectors: Sequence[str]) -> None:
        super().__init__(name="alerts", daemon=True)
        self._traffic, self._codec, self._ended = traffic, Codec.of("alert"), threading.Event()
        self._consumer = Consumer(
            kafka.client(group_id="soak", enable_auto_commit=False, isolation_level="read_committed")
        )
        topics = [TOPICS.detector(name).alerts for name in detectors]
        partitions = [TopicPartition(topic, p, 0) for topic in topics for p in range(TOPICS.partitions)]
        self._consumer.assign(partitions)
        self.received: dict[str, list[ReceivedAlert]] = defaultdict(list)

    def run(self) -> None:
        while not self._ended.is_set():
            for message in self._consumer.consume(500, 0.05):
                if message.error() is not None:
                    continue
                alert, at = self._codec.decode(message.value()), time.time()
                event_id = alert["evidence"]["event_ids"][-1]
                latency = at - self._traffic.sent_at[event_id]
                self.received[alert["detector"]].append(ReceivedAlert(event_id, at, latency, alert["release"]))
        self._consumer.close()

    def end(self) -> None:
        """Stops it."""
        self._ended.set()
        self.join()

    def latencies(self, detector: str, begin: float, end: float) -> list[float]:
        """Of the alerts whose events were sent within the times."""
        return [t.latency for t in self.received[detector] if begin <= t.at - t.latency <= end]

    def silence(self, detector: str, begin: float, end: float) -> float:
        """The longest time between two alerts that were read within the times."""
        times = [begin, *sorted(t.at for t in list(self.received[detector]) if begin <= t.at <= end), end]
        return max((later - earlier for earlier, later in pairwise(times)), default=end - begin)


def live_report(folder: Path) -> JobStatus | None:
    """The report of the live job among those in the folder of a detector."""
    for instance in job_processes(folder):
        report = instance.status()
        if report is not None and report.phase == "live" and instance.alive():
            return report
    return None


class Watcher(threading.Thread):
    """Samples the report of every live job: (time, pid, generation, batch)."""

    def __init__(self, jobs: Path) -> None:
        super().__init__(name="watcher", daemon=True)
        self._jobs, self._ended = jobs, threading.Event()
        self.seen: dict[str, list[tuple[float, int, int, int]]] = defaultdict(list)

    def run(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            for folder in self._jobs.iterdir() if self._jobs.is_dir() else ():
                if (report := live_report(folder)) is not None:
                    self.seen[folder.name].append((time.time(), report.pid, report.generation, report.batch))

    def end(self) -> None:
        """Stops it."""
        self._ended.set()
        self.join()

    def disturbances(self, detector: str, begin: float, end: float) -> list[str]:
        """What is not as it should be with a detector that nobody touched within the times."""
        seen = [sample for sample in list(self.seen[detector]) if begin <= sample[0] <= end]
        found = []
        if len({(pid, generation) for _, pid, generation, _ in seen}) != 1:
            found.append(f"{detector}: its process changed")
        batches = [batch for *_, batch in seen]
        if any(later - earlier not in (0, 1) for earlier, later in pairwise(batches)):
            found.append(f"{detector}: its batch ids have a gap")
        if not seen or batches[-1] <= batches[0]:
            found.append(f"{detector}: it was stopped")
        return found


def processor_seconds() -> float:
    """What this machine's processors have been busy, in all."""
    times = psutil.cpu_times()
    return sum(times) - times.idle - getattr(times, "iowait", 0.0)


@contextmanager
def burning(seconds: float, length: float) -> Iterator[None]:
    """Burns `seconds` of processor time over `length` seconds during the block, as nice as a starting job is."""
    workers = os.cpu_count() or 1
    share = min(1.0, seconds / length / workers)
    code = (
        f"import os, time; os.nice(10); end = time.time() + {length}\n"
        "while time.time() < end:\n"
        "    began = time.process_time()\n"
        f"    while time.process_time() - began < 0.1 * {share}: pass\n"
        f"    time.sleep(0.1 * (1 - {share}))"
    )
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(workers)]
    try:
        yield
    finally:
        for process in processes:
            process.wait()


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")
