"""The latency of a hop: from the moment an event is meant to be sent until its alert is with a reader of the topic."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from lozenge.contracts.avro import Codec
from tests.bench.harness.consumer import Arrival, Gauge, Recorder
from tests.bench.harness.producer import Feed, Segment, Sent
from tests.bench.harness.row import START_SECONDS, Cell, Measure, Method, Plan, Visit
from tests.bench.harness.running import Dead, Running, empty, started
from tests.bench.harness.statistics import curve, quantile
from tests.bench.harness.workload import Task, number
from tests.streams import event_codec

MEASURES = (Measure("p50", "ms"), Measure("p99", "ms"))
WARM_RATE, WARM_SECONDS = 1000, 5
START_PATIENCE, PATIENCE = 150.0, 30.0
DROPPED, DROPPED_OF_STATE = 0.2, 0.5
"""The first share of each segment does not count: a system that was idle until then comes into step.

Where it keeps state, that part is as long as the one that counts: a system that commits once a minute has committed
what the warm-up alone has changed by then, if either part is a minute.
"""


def measure(visit: Visit) -> Iterator[Cell]:
    """Starts the system, warms it up with an event of every card and some seconds of traffic, measures each rate."""
    start = visit.start
    empty(visit.kafka)
    output = start.output if visit.system.command else start.input
    with (
        started(visit.system, start) as running,
        Gauge(visit.kafka, output) as gauge,
        Feed(visit.kafka, start.task) as feed,
    ):
        echoes = visit.system.command is None
        codec = event_codec() if echoes else Codec.of("alert")

        def number_in(value: bytes) -> int:
            record = codec.decode(value)
            return number(record["event_id"]) if echoes else start.task.number_of(record)

        yield from Trial(start.task, running, gauge, feed, number_in, echoes).at_rates(visit)


class Trial:
    """A running system with its producer and its consumer; it counts the events on.

    `number_in` gives the number of the event that a record of the output is about.
    """

    def __init__(
        self,
        task: Task,
        running: Running,
        gauge: Recorder,
        feed: Feed,
        number_in: Callable[[bytes], int],
        echoes: bool = False,
    ) -> None:
        self._task, self._running, self._gauge, self._feed = task, running, gauge, feed
        self._number_in, self._echoes = number_in, echoes
        self._next = 0

    def at_rates(self, visit: Visit) -> Iterator[Cell]:
        """Warms it up, waits while it is cold, and measures it at each rate of the visit."""
        self.warm_up()
        time.sleep(visit.system.warm_up_seconds)
        dropped = DROPPED if self._task.kind == "rule" else DROPPED_OF_STATE
        for rate in visit.plan.rates:
            visit.watch.look()
            sent, arrivals = self.segment(rate, visit.seconds)
            values, void, spread = measured(arrivals, sent, self.expected(sent.segment), self._number_in, dropped)
            facts = {"sent": sent.delivered, "received": len(arrivals), "producer_late_p99_ms": sent.late_p99_ms}
            cell = visit.cell(f"{rate}/s", values, void, facts, visit.watch.look())
            yield replace(cell, curve=spread)

    def warm_up(self) -> None:
        """Raises Dead if it ends, or not all comes out."""
        for end, rate in ((self._task.keys, 0), (self._task.keys + WARM_RATE * WARM_SECONDS, WARM_RATE)):
            sent = self._send(Segment(self._next, end, rate))
            wanted = len(self.expected(sent.segment))
            if not self._running.await_outputs(self._gauge, wanted, START_PATIENCE):
                raise Dead(f"gave {self._gauge.count} of {wanted} alerts of its warm-up; {self._running.said()}")
            self._gauge.take()

    def segment(self, rate: int, seconds: float) -> tuple[Sent, list[Arrival]]:
        """What was sent in the time, and all that came of it."""
        sent = self._send(Segment(self._next, self._next + int(rate * seconds), rate))
        self._running.await_outputs(self._gauge, len(self.expected(sent.segment)), PATIENCE)
        return sent, self._gauge.take()

    def expected(self, segment: Segment) -> set[int]:
        """The numbers of the events that should come out."""
        return expected(segment, self._task, self._echoes)

    def _send(self, segment: Segment) -> Sent:
        self._next = segment.end
        return self._feed.send(segment)


def expected(segment: Segment, task: Task, echoes: bool = False) -> set[int]:
    """The numbers of the events of a segment that should come out of a system."""
    return {n for n in range(segment.first, segment.end) if echoes or task.raises(n)}


def measured(
    arrivals: Sequence[Arrival],
    sent: Sent,
    wanted: set[int],
    number_in: Callable[[bytes], int],
    dropped: float = DROPPED,
) -> tuple[dict[str, float], str, list[float]]:
    """The percentiles in ms, why they are void, and the whole distribution."""
    came = [(number_in(arrival.value), arrival.came_ns) for arrival in arrivals]
    void = discrepancy(sent, wanted, (n for n, _ in came))
    counted = sent.segment.first + dropped * (sent.segment.end - sent.segment.first)
    latencies = sorted((at - sent.meant_ns(n)) / 1e6 for n, at in came if n >= counted and n in wanted)
    if not latencies:
        return {}, void or "nothing came out", []
    return {"p50": quantile(latencies, 0.5), "p99": quantile(latencies, 0.99)}, void, curve(latencies)


def discrepancy(sent: Sent, wanted: set[int], came: Iterable[int]) -> str:
    """How what came out differs from what had to; "" if it does not."""
    counts = Counter(came)
    wrong = {
        "not delivered": sent.segment.end - sent.segment.first - sent.delivered,
        "missing": len(wanted - counts.keys()),
        "emitted twice": sum(n > 1 for n in counts.values()),
        "unexpected": len(counts.keys() - wanted),
    }
    return ", ".join(f"{count} {what}" for what, count in wrong.items() if count)


def seconds(plan: Plan, task: Task, systems: int) -> float:
    """A start, and traffic at each rate."""
    return START_SECONDS + len(plan.rates) * plan.seconds(systems)


METHOD = Method("hop", MEASURES, measure, seconds)
