"""How a system begins, begins again and rests, while events come slowly.

Start: from the start of its process to the first alert. Recovery: from a kill -9 of all of its processes, behind which
it is started again at once, to the first alert about an event that came after the kill. Rest: memory and processor time
of all of its processes while nothing comes, warm from the events before.
"""

import time
from collections.abc import Callable, Iterator, Sequence

from lozenge.contracts.avro import Codec
from tests.bench.harness.consumer import Arrival, Gauge
from tests.bench.harness.producer import Feed, Traffic
from tests.bench.harness.row import START_SECONDS, Cell, Measure, Method, Plan, Visit
from tests.bench.harness.running import Dead, Running, empty, placed, process
from tests.bench.harness.workload import Task

START, RECOVERY = Measure("start", "s"), Measure("recovery", "s")
MEMORY, IDLE = Measure("memory", "MB"), Measure("idle CPU", "thousandths of a core")
MEASURES = (START, RECOVERY, MEMORY, IDLE)
POINT = "life"
RATE, WARM_SECONDS, SETTLE_SECONDS = 100, 10, 5
PATIENCE_SECONDS = 150.0


def measure(visit: Visit) -> Iterator[Cell]:
    """Starts it, warms it up, kills it, starts it again and lets it rest."""
    assert visit.system.command
    start = visit.start
    empty(visit.kafka)
    with placed(start), Gauge(visit.kafka, start.output) as gauge, Feed(visit.kafka, start.task) as feed:
        command, events = visit.system.command(start), Events(feed, gauge, start.task)
        visit.watch.look()
        began = time.time_ns()
        with process(command, start, visit.system.hosts()) as running:
            first = events.until(lambda _: True, running)
            events.flow(WARM_SECONDS)
            visit.watch.note()
            killed, fresh = time.time_ns(), events.next
            running.kill()
        with process(command, start, visit.system.hosts()) as running:
            again = events.until(lambda number: number >= fresh, running)
            events.flow(WARM_SECONDS)
            memory, idle = _rest(running, visit.plan.rest_seconds)
            values = {
                START.name: (first - began) / 1e9,
                RECOVERY.name: (again - killed) / 1e9,
                MEMORY.name: memory,
                IDLE.name: idle,
            }
            yield visit.cell(POINT, values, "", {"events": events.next}, visit.watch.look())


class Events(Traffic):
    """Events that flow slowly, and the alerts about them."""

    def __init__(self, feed: Feed, gauge: Gauge, task: Task) -> None:
        super().__init__(feed, RATE)
        self._gauge, self._task = gauge, task
        self._codec = Codec.of("alert")

    def until(self, wanted: Callable[[int], bool], running: Running) -> int:
        """When the first alert came about a wanted event, by its number. Raises Dead."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            running.check()
            self.flow(0.5)
            if came := self._first(self._gauge.take(), wanted):
                return came
        raise Dead(f"emitted nothing for {PATIENCE_SECONDS:.0f} s; {running.said()}")

    def _first(self, arrivals: Sequence[Arrival], wanted: Callable[[int], bool]) -> int:
        moments = (a.came_ns for a in arrivals if wanted(self._task.number_of(self._codec.decode(a.value))))
        return next(moments, 0)


def seconds(plan: Plan, task: Task, systems: int) -> float:
    """Two starts, of which the second finds all as the first has left it, and the waits."""
    return START_SECONDS + 2 * WARM_SECONDS + SETTLE_SECONDS + plan.rest_seconds


def _rest(running: Running, seconds: float) -> tuple[float, float]:
    """MB, and thousandths of a core."""
    assert running.meter
    time.sleep(SETTLE_SECONDS)
    before = running.meter.read().cpu_seconds
    time.sleep(seconds)
    used = running.meter.read().cpu_seconds - before
    return running.memory_mb(), 1000 * used / seconds


METHOD = Method("life", MEASURES, measure, seconds)
