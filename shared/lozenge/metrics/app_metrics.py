"""The metric names, labels and buckets of every app; `process_cost` has those of its processes.

An app counts into the metrics of its kind: counting never blocks, labels are bounded, and every counter is at zero
from the start. An instance is one start of one process: its counters begin at zero, and no other start has its name.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from math import isnan, nan
from typing import Any, ClassVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from lozenge.metrics.process_cost import ProcessCost
from lozenge.metrics.refused_rows import RefusedRows
from lozenge.metrics.sample_text import encode
from lozenge.metrics.state_size import StateMetrics
from lozenge.metrics.stream_metrics import ReleaseInForce, SkippedRecords
from lozenge.process.env_settings import this_start
from lozenge.process.usage import Cost

MOST_RELEASES = 5
"""Of a detector, with a series of their own: the newest; a series that never ends is never dropped."""
LATENCY_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 30, 60, 300, 3600, float("inf"))
"""Seconds; fine where a detector lives, coarse where it catches up."""


BACKLOG_SECONDS = 60.0
"""What arrived so long before a process began is backlog: how late it is says nothing of the process."""


class _Latency:
    """The latency of outputs, apart from that of backlog."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._began = time.time()
        self._live = _histogram(
            registry,
            "lozenge_latency_seconds",
            "From the raw record's arrival, or the event time of a group or timer, to the output's commit",
        )
        self._backlog = _histogram(
            registry,
            "lozenge_backlog_latency_seconds",
            f"The same of what arrived more than {BACKLOG_SECONDS:.0f} s before the process began",
        )

    def observe(self, seconds: float, count: int) -> None:
        is_backlog = time.time() - seconds < self._began - BACKLOG_SECONDS
        found = self._backlog if is_backlog else self._live
        for _ in range(count):
            found.observe(max(0.0, seconds))


def _histogram(registry: CollectorRegistry, name: str, meaning: str) -> Histogram:
    return Histogram(name, meaning, buckets=LATENCY_BUCKETS, registry=registry)


class AppMetrics:
    """What every app counts, for one instance of one app. Thread-safe; times in seconds, lag in offsets."""

    STAGES: ClassVar[tuple[str, ...]] = ()
    """The stages in which a record of this app can fail."""

    def __init__(self, app: str, instance: str = "", release: str = "") -> None:
        self.app, self.instance, self.release = app, instance or this_start(), release
        self.registry = CollectorRegistry()
        self._records = self._counter("lozenge_records", "Input records whose effect is committed")
        self._emitted = self._counter("lozenge_emitted", "Output records committed")
        self._dead = self._counter("lozenge_dead_letters", "Dead letters committed", "stage")
        self._batches = _histogram(self.registry, "lozenge_batch_seconds", "Batch duration")
        self._latency = _Latency(self.registry)
        self._lag = self._gauge("lozenge_lag_offsets", "Input offsets not yet processed; absent until it is known")
        self._lag.set(nan)
        self._cost = ProcessCost(self.registry)
        self.registry.register(RefusedRows())
        for stage in self.STAGES:
            self._dead.labels(stage)

    def records(self, count: int) -> None:
        """Counts input records whose effect was committed."""
        self._records.inc(count)

    def emitted(self, count: int) -> None:
        """Counts output records that were committed."""
        self._emitted.inc(count)

    def dead_letters(self, count: int, stage: str) -> None:
        """Counts dead letters of one of `STAGES`."""
        self._dead.labels(stage).inc(count)

    def batch(self, seconds: float) -> None:
        """Records one batch's duration."""
        self._batches.observe(seconds)

    def latency(self, seconds: float, count: int = 1) -> None:
        """Records how long an output took from the arrival of its input, or each of `count` outputs."""
        self._latency.observe(seconds, count)

    def lag(self, offsets: int) -> None:
        """Sets the number of input offsets not yet processed."""
        self._lag.set(offsets)

    def cost(self, cost: Cost) -> None:
        """Sets what the process has cost until now."""
        self._cost.set(cost)

    def snapshot(self, *, ended: bool = False) -> dict[str, Any]:
        """Every sample that has a value, as `{name{labels}: value}` with who, which release and when (Unix seconds).

        In a label's value `,`, `}` and `%` are percent-encoded.
        `ended` says that it is the last one of this instance.
        """
        samples = {
            encode(sample.name, sample.labels): sample.value
            for family in self.registry.collect()
            for sample in family.samples
            if not sample.name.endswith("_created") and not isnan(sample.value)
        }
        return {
            "app": self.app,
            "instance": self.instance,
            "release": self.release,
            "time": time.time(),
            "ended": ended,
            "samples": samples,
        }

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(name, meaning, labels, registry=self.registry)

    def _gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        return Gauge(name, meaning, labels, registry=self.registry)


class QueryMetrics(AppMetrics):
    """What a streaming query of Spark counts as well: how far it has read and committed."""

    def __init__(self, app: str, instance: str = "", release: str = "") -> None:
        super().__init__(app, instance, release)
        self._begun = self._counter("lozenge_offsets_begun", "Input offsets in batches that began")
        self._committed = self._counter("lozenge_offsets_committed", "Input offsets in batches that were committed")
        self._ahead = self._gauge("lozenge_reads_ahead", "1 in Real-Time Mode: it has read more than it has committed")

    def begun(self, offsets: int) -> None:
        """Counts input offsets of which a batch begins; those of a batch that is not committed come again."""
        self._begun.inc(offsets)

    def batch_progress(self, lag: int, read: int) -> None:
        """Progress within a batch in Real-Time Mode: the `lag` in offsets, and how many more offsets were `read`."""
        self._ahead.set(1)
        self._lag.set(lag)
        self._begun.inc(read)

    def committed(self, offsets: int) -> None:
        """Counts input offsets that a batch has committed. What is missing to those begun was processed twice."""
        self._committed.inc(offsets)


class JobMetrics(QueryMetrics):
    """The metrics of a detector's job."""

    STAGES = ("decode", "detect", "timer", "encode")

    def __init__(self, app: str, instance: str = "", release: str = "") -> None:
        super().__init__(app, instance, release)
        self.state = StateMetrics(self.registry)
        self._circuit_open = self._gauge(
            "lozenge_breaker_open", "1 if the job is paused: its code fails on too much of its input"
        )
        self._tables_refused = self._gauge(
            "lozenge_tables_refused",
            "Reference tables that are refused as they are now; their last good version is in force",
        )

    def health(self, *, circuit_open: bool | None = None, tables_refused: int | None = None) -> None:
        """Sets whether the job is paused because its code fails on too much of its input, and how many tables' files
        are refused; None keeps what was set."""
        if circuit_open is not None:
            self._circuit_open.set(circuit_open)
        if tables_refused is not None:
            self._tables_refused.set(tables_refused)


class UpstreamMetrics(QueryMetrics):
    """The metrics of an instance of upstream."""

    STAGES = ("decode", "normalise")

    def __init__(self, app: str, instance: str = "", release: str = "") -> None:
        super().__init__(app, instance, release)
        mappings = self._gauge(
            "lozenge_mapping_valid", "1 if the mapping of the source is in force, 0 if its records wait", "source"
        )
        refused = self._gauge(
            "lozenge_stream_release_refused",
            "1 if the requested release of the stream is refused: the last good one runs",
        )
        self.stream_release = ReleaseInForce(mappings, refused)
        self.skipped = SkippedRecords(
            self._counter("lozenge_skipped", "Raw records that a mapping skips by declaration", "source", "skip")
        )


class SinkMetrics(AppMetrics):
    """The metrics of a sink."""

    STAGES = ("decode",)

    def __init__(self, app: str, instance: str = "", release: str = "") -> None:
        super().__init__(app, instance, release)
        self._bytes = self._counter("lozenge_sink_bytes", "Bytes of the rows that a sink has committed, in memory")
        self._waits = self._gauge("lozenge_sink_waits", "1 while the topic of a cache does not exist")

    def written(self, size: int) -> None:
        """Counts the bytes of rows that were committed."""
        self._bytes.inc(size)

    def waits(self, waiting: bool) -> None:
        """Sets whether what the sink reads does not exist yet."""
        self._waits.set(waiting)


class NotifierMetrics(AppMetrics):
    """The metrics of a notifier: of its process, and of the store that it shares with others."""

    STAGES = ("decode", "deliver")

    def __init__(self, app: str, instance: str = "", release: str = "") -> None:
        super().__init__(app, instance, release)
        self._truncated = self._counter(
            "lozenge_dead_letters_truncated", "Dead letters too large for Kafka, whose end is lost"
        )
        self._routing = self._gauge("lozenge_routing_valid", "1 if the routing file is as it should be")
        self._routing.set(1)
        self._due = self._gauge("lozenge_deliveries_due", "Notifications on their way to a channel", "channel")
        self._deliveries = self._counter(
            "lozenge_deliveries",
            "Attempts to deliver, by how they ended: sent, retried (later) or failed (for good)",
            *("channel", "outcome"),
        )
        self._rate_limited = self._gauge(
            "lozenge_alerts_rate_limited", "Alerts beyond the rate limit of their detector", "detector"
        )
        self._precision = self._gauge(
            "lozenge_precision",
            "Share of labelled alerts that were confirmed, of the newest releases",
            *("detector", "release"),
        )

    def dead_letter_truncated(self) -> None:
        """Counts a dead letter that Kafka does not take whole."""
        self._truncated.inc()

    def routing(self, valid: bool) -> None:
        """Sets whether the routing file can be used as it is now."""
        self._routing.set(valid)

    def notifications(
        self,
        due: Mapping[str, int],
        rate_limited: Mapping[str, int],
        precision: Mapping[tuple[str, str], float],
    ) -> None:
        """Sets what the notifiers' store holds: deliveries due by channel, rate-limited alerts by detector, and the
        share of confirmed alerts by detector and release."""
        for gauge in (self._due, self._rate_limited, self._precision):
            gauge.clear()
        for channel, count in due.items():
            self._due.labels(channel).set(count)
        for detector, count in rate_limited.items():
            self._rate_limited.labels(detector).set(count)
        for detector, release in _newest_releases(precision):
            self._precision.labels(detector, release).set(precision[detector, release])

    def deliveries(self, channel: str, *, sent: int = 0, retried: int = 0, failed: int = 0) -> None:
        """Counts attempts to deliver to a channel of the routing file, by how they ended; its series begin at zero."""
        for outcome, count in (("sent", sent), ("retried", retried), ("failed", failed)):
            self._deliveries.labels(channel, outcome).inc(count)


def _newest_releases(found: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Detector and release of the newest `MOST_RELEASES` of each detector."""
    for _, group in groupby(sorted(found, key=_by_number), key=lambda each: each[0]):
        yield from list(group)[-MOST_RELEASES:]


def _by_number(named: tuple[str, str]) -> tuple[str, int, str]:
    detector, release = named
    digits = release.removeprefix("r")
    return detector, int(digits) if digits.isdecimal() else -1, release
