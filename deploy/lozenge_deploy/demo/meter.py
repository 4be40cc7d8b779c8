"""The newest numbers of every app, from the snapshots that the apps themselves publish."""

import json
import re
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from lozenge import topics
from lozenge.kafka import KafkaSettings

RATE_SECONDS = 5.0
LATENCY_SECONDS = 30.0
_CALL_SECONDS = 2.0
_RECORDS = "lozenge_records_total"

Samples = Mapping[str, float]


@dataclass(frozen=True)
class Reading:
    """One app now: totals since it first started, a rate over seconds, latencies of the last half minute."""

    records: int
    rate: float
    lag: int
    emitted: int
    p50: float | None
    p95: float | None
    dead_letters: int
    batches: int
    at: float


class App:
    """The recent snapshots of one app. A restarted one counts from zero; its totals go on here."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, dict[str, float]]] = deque()
        self._last: Samples = {}
        self._earlier: dict[str, float] = {}

    def add(self, at: float, samples: Samples) -> None:
        """Takes the next snapshot, written at Unix time `at`."""
        if samples.get(_RECORDS, 0.0) < self._last.get(_RECORDS, 0.0):
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
        done = now.get(_RECORDS, 0.0)
        new = done - before.get(_RECORDS, 0.0)
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
            at=at,
        )


class Meter:
    """Reads the metrics topic, and how much the feed has written; used by one thread, which it never holds up."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._apps: dict[str, App] = {}
        self._sent, self._received = App(), App()
        self._consumer = Consumer(kafka.client(group_id="demo-view", enable_auto_commit=False))
        self._consumer.assign([TopicPartition(topics.METRICS, 0, 0)])

    def read(self) -> None:
        """Takes in what was published since the last call."""
        for message in self._consumer.consume(1000, 0.0):
            if message.error() is None:
                snapshot: Any = json.loads(message.value() or b"{}")
                self._apps.setdefault(snapshot["app"], App()).add(snapshot["time"], snapshot["samples"])
        ends = [self._end(partition) for partition in range(topics.RAW_PARTITIONS)]
        self._sent.add(time.time(), {_RECORDS: float(sum(ends))})

    def reading(self, app: str) -> Reading | None:
        """The newest of an app; None if it has not published anything yet."""
        return self._apps[app].reading() if app in self._apps else None

    def sent(self) -> Reading | None:
        """The feed: what has arrived in the raw topic."""
        return self._sent.reading()

    def received(self, count: int) -> Reading | None:
        """The webhook receiver, which has taken `count` messages until now."""
        self._received.add(time.time(), {_RECORDS: float(count)})
        return self._received.reading()

    def close(self) -> None:
        """Gives the connection back."""
        self._consumer.close()

    def _end(self, partition: int) -> int:
        place = TopicPartition(topics.RAW_JSON, partition)
        end: int = self._consumer.get_watermark_offsets(place, timeout=_CALL_SECONDS)[1]
        return end


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
    return name.split("{")[0].endswith(("_total", "_bucket", "_count", "_sum"))
