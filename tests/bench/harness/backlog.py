"""Throughput over a backlog: events per second, and per second of processor time of the system's whole process tree.

It is measured over the second half, so a system is compiled and warm. How far a system is shows in its alerts, as each
names its event and the broker stamps when it was written: no system has to report anything, and none has
to commit offsets.
"""

import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lozenge.contracts.avro import Codec
from lozenge.kafka.settings import KafkaSettings
from tests.bench.harness.consumer import Gauge
from tests.bench.harness.hop import START_PATIENCE, discrepancy, expected
from tests.bench.harness.platform import TOPICS
from tests.bench.harness.producer import Feed, Segment, Sent
from tests.bench.harness.row import START_SECONDS, Cell, Measure, Method, Plan, Visit
from tests.bench.harness.running import Running, empty, started
from tests.bench.harness.workload import Task
from tests.streams import RAW_JSON

PEAK = Measure("peak memory", "MB")
MEASURES = (Measure("events/s/core", "", "higher"), Measure("events/s", "", "higher"), PEAK)
POINT = "backlog"
SAMPLE_SECONDS = 0.25
EVENT_SECONDS, ALERT_SECONDS = 15e-6, 100e-6
"""What a system takes for each, about: most of them have one busy thread."""


def prepare(kafka: KafkaSettings, task: Task, plan: Plan) -> None:
    """Writes the backlog, which every system of the row reads from its first event on."""
    write(kafka, task, plan.events)


def write(kafka: KafkaSettings, task: Task, count: int, *, raw: bool = False) -> None:
    """So many events, or `raw` records, and nothing else in their topic."""
    empty(kafka, TOPICS.prefixed(RAW_JSON) if raw else TOPICS.events("auth"))
    with Feed(kafka, task, raw=raw) as feed:
        assert feed.send(Segment(0, count)).delivered == count


def measure(visit: Visit) -> Iterator[Cell]:
    """Starts the system and waits until all of it came out."""
    if visit.system.probe:
        visit.watch.look()
        values = visit.system.probe(visit.start)
        yield visit.cell(POINT, values, "", {}, visit.watch.look())
        return
    yield drained(visit, visit.start.output, Codec.of("alert"))


def drained(visit: Visit, output: str, codec: Codec) -> Cell:
    """Starts the system, whose task says what its records in the topic `output` are about, and waits for all of them.

    The broker stamps the records of that topic.
    """
    start, segment = visit.start, Segment(0, visit.plan.events)
    wanted = expected(segment, start.task)
    with started(visit.system, start) as running, Gauge(visit.kafka, output) as gauge:
        visit.watch.look()
        samples = _watched(running, gauge, len(wanted))
        arrivals = gauge.take()
        load = visit.watch.look()
    came = [start.task.number_of(codec.decode(arrival.value)) for arrival in arrivals]
    void = discrepancy(Sent(segment, 0, segment.end, 0), wanted, came)
    moments = sorted(arrival.written_ns / 1e9 for arrival in arrivals)
    values = throughput(samples, moments, sorted(wanted)) if not void else {}
    void = void or ("" if values else "it came out at once: too small a backlog for a rate")
    if not void:
        values[PEAK.name] = max(s.memory_bytes for s in samples) / 1e6
    return visit.cell(POINT, values, void, {"received": len(arrivals)}, load)


@dataclass(frozen=True, slots=True)
class Sample:
    """What a system had cost at a moment (seconds since 1970)."""

    at: float
    cpu_seconds: float
    memory_bytes: int


def throughput(samples: Sequence[Sample], moments: Sequence[float], raising: Sequence[int]) -> dict[str, float]:
    """Over the second half: `raising` are the events that raise an alert, in order, `moments` when alerts were written.

    It begins with the sample after the one in which the first half came out: a batch that was coming out is whole then.
    """
    if not moments:
        return {}
    half = moments[len(moments) // 2 - 1]
    begun = next((s for s in samples if s.at > half + SAMPLE_SECONDS), samples[-1])
    ended = next((s for s in samples if s.at >= moments[-1]), samples[-1])
    done = bisect_right(moments, begun.at)
    events = raising[-1] - raising[done - 1]
    seconds, cpu = moments[-1] - begun.at, ended.cpu_seconds - begun.cpu_seconds
    if events <= 0 or seconds <= 0 or cpu <= 0:
        return {}
    return {"events/s/core": events / cpu, "events/s": events / seconds}


def _watched(running: Running, gauge: Gauge, wanted: int) -> list[Sample]:
    """A sample every so often until `wanted` alerts came, or none for too long."""
    samples, seen, changed = [], 0, time.monotonic()
    while True:
        count = gauge.count
        assert running.meter
        cost = running.meter.read()
        samples.append(Sample(time.time(), cost.cpu_seconds, cost.memory_bytes))
        if count != seen:
            seen, changed = count, time.monotonic()
        if count >= wanted or time.monotonic() - changed > START_PATIENCE:
            return samples
        running.check()
        time.sleep(SAMPLE_SECONDS)


def seconds(plan: Plan, task: Task, systems: int) -> float:
    """A start, and all events."""
    return START_SECONDS + plan.events * (EVENT_SECONDS + ALERT_SECONDS / task.every)


METHOD = Method("backlog", MEASURES, measure, seconds, prepare)
