"""The pause of an update: how late alerts come while one release is replaced by the next, under steady traffic.

A system with a standby starts it concurrently, and cuts over when that is ready. All others are updated as they
are in place: ended, and started again at once.
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from lozenge.contracts.avro import Codec
from tests.bench.harness.consumer import Gauge
from tests.bench.harness.hop import PATIENCE, START_PATIENCE, discrepancy, expected
from tests.bench.harness.producer import Feed, Segment, Sent, Traffic
from tests.bench.harness.row import START_SECONDS, Cell, Measure, Method, Plan, Visit
from tests.bench.harness.running import Dead, Running, empty, placed, process
from tests.bench.harness.system import Start
from tests.bench.harness.workload import Task

USUAL, PAUSE = Measure("latest before", "ms"), Measure("latest during it", "ms")
MEASURES = (USUAL, PAUSE)
POINT = "update"
RATE, WARM_SECONDS, USUAL_SECONDS, AFTER_SECONDS = 100, 15, 20, 10
_STEP_SECONDS, _LOOK_SECONDS, _READY_SECONDS = 1.0, 0.05, 120.0


def measure(visit: Visit) -> Iterator[Cell]:
    """Starts it, lets it come into step, notes what is usual, and updates it."""
    start, system = visit.start, visit.system
    assert system.command
    empty(visit.kafka)
    with (
        placed(start),
        Gauge(visit.kafka, start.output) as gauge,
        Feed(visit.kafka, start.task) as feed,
        ThreadPoolExecutor(1) as pool,
        ExitStack() as stack,
    ):

        def launch(words: Sequence[str]) -> Running:
            return stack.enter_context(process(words, start, system.hosts()))

        traffic = Traffic(feed, RATE)
        old = launch((system.hand_over.live if system.hand_over else system.command)(start))
        traffic.flow(_STEP_SECONDS)
        if not old.await_outputs(gauge, 1, START_PATIENCE):
            raise Dead(f"emitted nothing for {START_PATIENCE:.0f} s; {old.said()}")
        traffic.flow(WARM_SECONDS)
        visit.watch.look()
        settled = traffic.next
        traffic.flow(USUAL_SECONDS)
        ordered = traffic.next
        new = pool.submit(_updated, visit, old, launch)
        traffic.flow(_STEP_SECONDS)
        while not new.done():
            traffic.flow(_STEP_SECONDS)
        traffic.flow(AFTER_SECONDS)
        whole = _whole(traffic.sent)
        wanted = expected(whole.segment, start.task)
        new.result().await_outputs(gauge, len(wanted), PATIENCE)
        load = visit.watch.look()
        codec = Codec.of("alert")
        came = [(start.task.number_of(codec.decode(arrival.value)), arrival.came_ns) for arrival in gauge.take()]
        void = discrepancy(whole, wanted, (number for number, _ in came))
        late = [(number, late_ms(traffic.sent, number, at)) for number, at in came if number < traffic.next]
        values = {
            USUAL.name: max(ms for number, ms in late if settled <= number < ordered),
            PAUSE.name: max(ms for number, ms in late if number >= ordered),
        }
        yield visit.cell(POINT, values, void, {"events": traffic.next}, load)


def _whole(sent: Sequence[Sent]) -> Sent:
    """As if it were one segment; when its events were meant to go is for `late_ms` to say."""
    delivered = sum(each.delivered for each in sent)
    return Sent(Segment(0, sent[-1].segment.end, RATE), sent[0].began_ns, delivered, sent[-1].late_p99_ms)


def late_ms(sent: Sequence[Sent], number: int, at_ns: int) -> float:
    """How long after it was meant to go an event's alert came, of consecutive segments."""
    segment = bisect_right(sent, number, key=lambda each: each.segment.first) - 1
    return (at_ns - sent[segment].meant_ns(number)) / 1e6


def _updated(visit: Visit, old: Running, launch: Callable[[Sequence[str]], Running]) -> Running:
    hand, start = visit.system.hand_over, visit.start
    if hand is None:
        assert visit.system.command
        old.end()
        return launch(visit.system.command(start))
    new = launch(hand.standby(start))
    _await(new, hand.ready, start)
    if hand.ended is not None:
        old.request_stop()
        _await(old, hand.ended, start)
    hand.take(start)
    old.end()
    return new


def _await(running: Running, condition: Callable[[Start], bool], start: Start) -> None:
    """Raises Dead if it ends before the condition holds, or is not in time."""
    deadline = time.monotonic() + _READY_SECONDS
    while not condition(start):
        running.check()
        if time.monotonic() > deadline:
            raise Dead(f"was not as far after {_READY_SECONDS:.0f} s; {running.said()}")
        time.sleep(_LOOK_SECONDS)


def seconds(plan: Plan, task: Task, systems: int) -> float:
    """Two starts, and the traffic."""
    return 2 * START_SECONDS + WARM_SECONDS + USUAL_SECONDS + AFTER_SECONDS


METHOD = Method("update", MEASURES, measure, seconds)
