"""The newest numbers of every app, from the snapshots that the apps themselves publish."""

import json
import re
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from lozenge import topics
from lozenge.errors import BrokerUnavailable
from lozenge.kafka import KafkaSettings

RATE_SECONDS = 5.0
LATENCY_SECONDS = 30.0
RECORDS = "lozenge_records_total"
CPU = "lozenge_cpu_seconds"
_CALL_SECONDS = 10.0

Samples = Mapping[str, float]


@dataclass(frozen=True)
class Reading:
    """One app now: totals since it first started, a rate over seconds, latencies of the last half minute.

    `cpu_seconds` and `memory_bytes` are its whole process tree's, `cores` how many it keeps busy now.
    """

    records: int
    rate: float
    lag: int
    emitted: int
    p50: float | None
    p95: float | None
    dead_letters: int
    batches: int
    cpu_seconds: float
    cores: float
    memory_bytes: int
    at: float
    release: str


class App:
    """The recent snapshots of one app. A restarted one counts from zero; its totals go on here."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, dict[str, float]]] = deque()
        self._last: Samples = {}
        self._earlier: dict[str, float] = {}
        self._release = ""

    def add(self, at: float, samples: Samples, release: str = "") -> None:
        """Takes the next snapshot, written at Unix time `at` by a process of `release`."""
        self._release = release
        if samples.get(RECORDS, 0.0) < self._last.get(RECORDS, 0.0):
            ended = {name: value for name, value in self._last.items() if _is_total(name)}
            self._earlier = {name: self._earlier.get(name, 0.0) + value for name, value in ended.items()}
        self._last = samples
        self._recent.append((at, {name: value + self._earlier.get(name, 0.0) for name, value in samples.items()}))
        while len(self._recent) > 2 and self._recent[1][0] < at - LATENCY_SECONDS:
            self._recent.popleft()

    def reading(self) -> Reading | None:
        """What the snapshots say; None before the first."""
        if not self._recent:
            return None
        at, now = self._recent[-1]
        since, before = next((s for s in self._recent if s[0] >= at - RATE_SECONDS), self._recent[-1])
        done = now.get(RECORDS, 0.0)
        new = done - before.get(RECORDS, 0.0)
        buckets = _new_in_buckets(self._recent[0][1], now)
        return Reading(
            records=int(done),
            rate=new / (at - since) if at > since else 0.0,
            lag=int(now.get("lozenge_lag_offsets", 0.0)),
            emitted=int(now.get("lozenge_emitted_total", 0.0)),
            p50=quantile(buckets, 0.5),
            p95=quantile(buckets, 0.95),
            dead_letters=int(sum(v for n, v in now.items() if n.startswith("lozenge_dead_letters_total"))),
            batches=int(now.get("lozenge_batch_seconds_count", 0.0)),
            cpu_seconds=(cpu := now.get(CPU, 0.0)),
            cores=(cpu - before.get(CPU, 0.0)) / (at - since) if at > since else 0.0,
            memory_bytes=int(now.get("lozenge_memory_bytes", 0.0)),
            at=at,
            release=self._release,
        )


class Readings:
    """Follows the metrics topic from `since` seconds ago on (None: from its beginning); used by one thread."""

    def __init__(self, kafka: KafkaSettings, since: float | None = None) -> None:
        """Raises BrokerUnavailable."""
        self._apps: dict[str, App] = {}
        self._consumer = Consumer(kafka.client(group_id="lozenge-readings", enable_auto_commit=False))
        start = TopicPartition(topics.METRICS, 0, 0)
        try:
            _, self._end = self._consumer.get_watermark_offsets(start, timeout=_CALL_SECONDS)
            if since is not None:
                asked = TopicPartition(topics.METRICS, 0, int((time.time() - since) * 1000))
                (start,) = self._consumer.offsets_for_times([asked], timeout=_CALL_SECONDS)
        except KafkaException as error:
            self._consumer.close()
            raise BrokerUnavailable(
                f"reading {topics.METRICS}: {error.args[0].str()}", hint=f"check the broker at {kafka.bootstrap}"
            ) from error
        self._consumer.assign([start])
        self._position = start.offset if start.offset >= 0 else self._end

    def read(self) -> None:
        """Takes in what was published since the last call; waits for nothing."""
        for message in self._consumer.consume(1000, 0.0):
            if message.error() is None:
                self._position = (message.offset() or 0) + 1
                snapshot: Any = json.loads(message.value() or b"{}")
                app = self._apps.setdefault(snapshot["app"], App())
                app.add(snapshot["time"], snapshot["samples"], snapshot.get("release", ""))

    def catch_up(self) -> None:
        """Takes in everything that was there when this began, or as much as comes within some seconds."""
        deadline = time.monotonic() + _CALL_SECONDS
        while self._position < self._end and time.monotonic() < deadline:
            self.read()
            time.sleep(0.005)

    def apps(self) -> list[str]:
        """Who has published, by name."""
        return sorted(self._apps)

    def reading(self, app: str) -> Reading | None:
        """The newest of an app; None if it has not published anything yet."""
        return self._apps[app].reading() if app in self._apps else None

    def close(self) -> None:
        """Gives the connection back."""
        self._consumer.close()


def quantile(buckets: Sequence[tuple[float, float]], share: float) -> float | None:
    """The value below which `share` of the observations lie, linear within its bucket; None without any.

    `buckets` are (upper bound, observations up to it), rising; in the last, open one it is the lower bound.
    """
    total = buckets[-1][1] if buckets else 0.0
    if total <= 0:
        return None
    wanted = share * total
    for (low, below), (high, upto) in pairwise([(0.0, 0.0), *buckets]):
        if upto >= wanted and upto > below:
            return low if high == float("inf") else low + (high - low) * (wanted - below) / (upto - below)
    return None


def _new_in_buckets(before: Samples, now: Samples) -> list[tuple[float, float]]:
    found = []
    for name, count in now.items():
        if bound := re.fullmatch(r"lozenge_latency_seconds_bucket\{le=(.+)\}", name):
            found.append((float(bound[1]), count - before.get(name, 0.0)))
    return sorted(found)


def _is_total(name: str) -> bool:
    return name.split("{")[0].endswith(("_total", "_bucket", "_count", "_sum", CPU))
