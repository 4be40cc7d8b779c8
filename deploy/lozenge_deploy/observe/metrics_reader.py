"""The current metrics of every app, from the snapshots that the apps publish."""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lozenge.kafka.compacted_topic import CompactedTopic
from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.sample_text import decode
from lozenge_deploy.observe.metrics_table import HISTORY_SECONDS, App, Samples, Snapshot

RATE_SECONDS = 5.0
RECORDS = "lozenge_records_total"
BEGUN = "lozenge_offsets_begun_total"
AHEAD = "lozenge_reads_ahead"
DEAD = "lozenge_dead_letters_total"
SKIPPED = "lozenge_skipped_total"
LAG = "lozenge_lag_offsets"
CPU = "lozenge_cpu_seconds_total"
MAPPING = "lozenge_mapping_valid"
TABLE = "lozenge_table_state"
WAITS = "lozenge_sink_waits"
_CALL_SECONDS = 10.0
_CLOCK_SECONDS = 600.0
"""How far the clock of a process may be ahead; a snapshot of a later time is none, and would stay the newest."""
_BUCKET = re.compile(r"lozenge_latency_seconds_bucket\{le=(\+Inf|\d+(?:\.\d+)?(?:e[+-]?\d+)?)\}")


@dataclass(frozen=True)
class Reading:
    """The current metrics of an app.

    - Totals count since its first start, rates since a few seconds, latencies since half a minute. Without a latency
      in that time, they count since the start of the processes alive.
    - `rate`: records read per second.
    - `dead_share`: dead letters per committed record. In Real-Time Mode commits are minutes apart.
    - `cpu_seconds`, `memory_bytes`: see `lozenge.metrics.process_cost`; `cores`: busy cores.
    - `instances`: processes alive. Without any, rates and memory are 0.
    - `lag`: in offsets; None until a process that is alive knows it.
    - `at`: Unix time of the newest snapshot.
    - `catch_up`: see `catch_up_seconds`.
    - `refused_mappings`: of upstream, the sources whose raw records wait; `skipped`: raw records that mappings skip.
    - `table_state`: what the last look of a loader has found; "" of other apps.
    - `waits`: whether a cache waits for a topic that does not exist.
    """

    instances: int
    records: int
    rate: float
    lag: int | None
    catch_up: float | None
    emitted: int
    p50: float | None
    p95: float | None
    dead_letters: int
    dead_share: float
    batches: int
    cpu_seconds: float
    cores: float
    memory_bytes: int
    at: float
    release: str
    refused_mappings: tuple[str, ...] = ()
    skipped: int = 0
    table_state: str = ""
    waits: bool = False


def reading_of(app: App, now: float) -> Reading | None:
    """The metrics of `app` at Unix time `now`; None before its first snapshot."""
    if app.newest is None:
        return None
    samples, recent = app.samples(now), list(app.growth(RATE_SECONDS, now))
    buckets = _latencies(app, now)

    def per_second(name: str) -> float:
        return sum(grown.get(name, 0.0) / seconds for seconds, grown in recent if seconds > 0)

    return Reading(
        instances=len(app.alive(now)),
        records=int(samples.get(RECORDS, 0.0)),
        rate=per_second(_read_by(samples)),
        lag=int(samples[LAG]) if LAG in samples else None,
        catch_up=catch_up_seconds(app, now),
        emitted=int(samples.get("lozenge_emitted_total", 0.0)),
        p50=quantile(buckets, 0.5),
        p95=quantile(buckets, 0.95),
        dead_letters=int(sum(v for n, v in samples.items() if n.startswith(DEAD))),
        dead_share=_dead_share([grown for _, grown in recent]),
        batches=int(samples.get("lozenge_batch_seconds_count", 0.0)),
        cpu_seconds=samples.get(CPU, 0.0),
        cores=per_second(CPU),
        memory_bytes=int(samples.get("lozenge_memory_bytes", 0.0)),
        at=app.newest.time,
        release=app.newest.release,
        refused_mappings=tuple(sorted(_refused(samples))),
        skipped=int(sum(v for n, v in samples.items() if n.startswith(SKIPPED))),
        table_state=table_state(samples),
        waits=bool(samples.get(WAITS)),
    )


def catch_up_seconds(app: App, now: float) -> float | None:
    """Seconds until the lag of `app` is 0, if it shrinks as in the last half minute.

    0 if the lag is less than the records of `RATE_SECONDS`; infinite if it does not shrink; None while it is unknown.
    """
    lag = shrinking = processed = known = 0.0
    alive = app.alive(now)
    if alive and not any(LAG in instance.last.samples for instance in alive):
        return None
    for instance in alive:
        counter = _read_by(instance.last.samples)
        last, before = instance.last, instance.since(counter)
        lag += last.samples.get(LAG, 0.0)
        if (seconds := last.time - before.time) > 0:
            known += seconds
            shrinking += (before.samples.get(LAG, 0.0) - last.samples.get(LAG, 0.0)) / seconds
            processed += (last.samples.get(counter, 0.0) - before.samples.get(counter, 0.0)) / seconds
    if lag <= processed * RATE_SECONDS:
        return 0.0
    if known < RATE_SECONDS:
        return None
    return lag / shrinking if shrinking > 0 else float("inf")


class MetricsReader:
    """Follows the compacted metrics topic from its beginning; used by one thread."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self.table: dict[str, App] = {}
        self._snapshots = CompactedTopic(kafka, kafka.topics.metrics, Snapshot.parse)

    def read(self) -> None:
        """Reads what was published since the last call, without waiting."""
        self._take(self._snapshots.poll(0.0))

    def catch_up(self) -> None:
        """Reads up to the present end; raises BrokerUnavailable if records stop arriving."""
        self._take(self._snapshots.catch_up(_CALL_SECONDS))

    def _take(self, changed: Iterable[str]) -> None:
        for key in changed:  # each before the next one of the same process replaces it
            snapshot = self._snapshots.rows.get(key)
            if snapshot is not None and snapshot.time <= time.time() + _CLOCK_SECONDS:
                self.table.setdefault(snapshot.app, App()).take(snapshot)

    def apps(self) -> list[str]:
        """The apps that have published, by name."""
        return sorted(self.table)

    def reading(self, app: str) -> Reading | None:
        """The metrics of an app; None before its first snapshot."""
        return reading_of(self.table[app], time.time()) if app in self.table else None

    def close(self) -> None:
        """Closes the connection."""
        self._snapshots.close()


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


def _read_by(samples: Samples) -> str:
    """The counter of records read: in Real-Time Mode the counter of committed ones grows only at commits."""
    return BEGUN if samples.get(AHEAD) else RECORDS


def _refused(samples: Samples) -> Iterator[str]:
    """The sources whose mapping no process alive has in force."""
    for text, value in samples.items():
        name, labels = decode(text)
        if name == MAPPING and not value:
            yield labels["source"]


def table_state(samples: Samples) -> str:
    """What the last look of a loader has found; "" of other apps."""
    labelled = (decode(text) for text, value in samples.items() if value)
    return next((labels["state"] for name, labels in labelled if name == TABLE), "")


def _dead_share(grown: Sequence[Samples]) -> float:
    dead = sum(value for samples in grown for name, value in samples.items() if name.startswith(DEAD))
    records = sum(samples.get(RECORDS, 0.0) for samples in grown)
    return dead / records if records else float("inf") if dead else 0.0


def _latencies(app: App, now: float) -> list[tuple[float, float]]:
    recent = _buckets(grown for _, grown in app.growth(HISTORY_SECONDS, now))
    return recent if recent and recent[-1][1] else _buckets(instance.last.samples for instance in app.alive(now))


def _buckets(grown: Iterable[Samples]) -> list[tuple[float, float]]:
    found: dict[float, float] = {}
    for samples in grown:
        for name, count in samples.items():
            if bound := _BUCKET.fullmatch(name):
                found[float(bound[1])] = found.get(float(bound[1]), 0.0) + count
    return sorted(found.items())
