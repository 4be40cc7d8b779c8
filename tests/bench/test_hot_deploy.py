"""Twenty operations on single detectors under traffic, and what the others notice of them: nothing.

    python -m pytest -q -s tests/bench/test_hot_deploy.py        LOZENGE_SOAK_OPERATIONS=20 LOZENGE_SOAK_SEED=4

Five detectors, two of them stateful, process 300 events a second. After each operation a control of the same length
burns the same processor time, niced, without any operation; the latency of the others is compared with that.
Every detector's alerts are held against what the traffic should have raised: each once. At the end one detector is
stopped inside its transaction, and the events gain a field.
"""

import json
import os
import random
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from lozenge.contracts.avro import Codec
from lozenge.kafka.schema_topic import announce
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.topic_reader import bounds
from tests.bench.harness.platform import TOPICS
from tests.bench.soak import burning, processor_seconds, quantile
from tests.bench.world import SEED, Operations, World, stopped, wait_until, world_of
from tests.integration.harness import STOPS_IN_A_TRANSACTION, wider_events

RATE = 300
OPERATIONS = int(os.environ.get("LOZENGE_SOAK_OPERATIONS", "20"))
DETECTORS = {"rule_a": "rule", "rule_b": "rule", "rule_c": "rule", "fold_a": "stateful", "fold_b": "stateful"}
CONTROL_SECONDS = 20.0
STOPPED_SECONDS = 20.0
NOTICED = 1.10
"""A latency this much above its control's would be noticed."""
AFTER_SECONDS, BEFORE_SECONDS = 6.0, 3.0


@dataclass(frozen=True)
class Done:
    """One operation: when, and what came of it."""

    what: str
    detector: str
    begin: float
    end: float
    silence: float
    usual: float
    ratios: dict[str, float]
    disturbances: list[str]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world_of(tmp_path_factory.mktemp("soak"), DETECTORS, RATE) as world:
        yield world


def test_twenty_operations_on_single_detectors_and_nobody_else_notices(world: World) -> None:
    chance, operations = random.Random(SEED), Operations(world)
    kinds: list[Callable[[str], None]] = [
        *(operations.update, operations.rollback, operations.set, operations.pause),
        *(operations.retire, operations.restart, operations.kill_job, operations.kill_the_agent),
    ]
    time.sleep(20)  # all are warm
    idle_began, idle_cpu = time.time(), processor_seconds()
    time.sleep(15)
    idle = (processor_seconds() - idle_cpu) / (time.time() - idle_began)
    print(f"at rest, {RATE} events/s: {idle:.2f} cores", flush=True)
    done = []
    for number in range(OPERATIONS):
        operation = kinds[number % len(kinds)] if number < len(kinds) else chance.choice(kinds)
        detector = chance.choice(list(DETECTORS))
        done.append(_one(world, operation, detector, idle))
        print(_line(done[-1]), flush=True)
    stop = world.folder / "stop-now"
    world.change("rule_b", STOPS_IN_A_TRANSACTION.format(file=stop))
    world.lozenge("deploy", "rule_b")
    time.sleep(10)

    def stop_inside_a_transaction(detector: str) -> None:
        pid = world.pid(detector)
        stop.touch()
        assert wait_until(lambda: stopped(pid))
        time.sleep(STOPPED_SECONDS)
        os.kill(pid, signal.SIGCONT)

    done.append(_one(world, stop_inside_a_transaction, "rule_b", idle))
    print(_line(done[-1]), flush=True)
    _gain_a_field(world)
    world.show_cost("under load")
    world.traffic.end()
    _summary(done)
    wrong = world.await_all()
    time.sleep(30)
    world.show_cost("at rest")
    print(json.dumps(wrong) if wrong else "every event's alert exactly once, in all five", flush=True)
    assert not wrong
    assert not [line for d in done for line in d.disturbances]
    there = partitions(world.kafka)
    dead = [TOPICS.dead_letters(name) for name in DETECTORS]
    dead_letters = sum(end for topic in dead for _, end in bounds(world.kafka, topic, there[topic]).values())
    print(f"dead letters: {dead_letters}", flush=True)
    assert not dead_letters


def _gain_a_field(world: World) -> None:
    """Five detectors of older releases run on, each in its process, while upstream writes a field more."""
    before = {name: world.pid(name) for name in DETECTORS}
    begin, wider = time.time(), wider_events()
    announce(world.kafka, [wider])
    world.traffic.codec = Codec(wider)
    time.sleep(CONTROL_SECONDS)
    end = time.time()
    assert {name: world.pid(name) for name in DETECTORS} == before
    silences = ", ".join(f"{name} {world.alerts.silence(name, begin, end):.2f}" for name in DETECTORS)
    print(f"a field more from upstream: the same five processes; longest silence in s: {silences}", flush=True)


def _one(world: World, operation: Callable[[str], None], detector: str, idle: float) -> Done:
    others = [name for name in DETECTORS if name != detector]
    begin, burnt = time.time(), processor_seconds()
    operation(detector)
    time.sleep(AFTER_SECONDS)
    end = time.time()
    extra = max(0.1, processor_seconds() - burnt - idle * (end - begin))
    time.sleep(2)  # the alerts of what was sent within are read
    control_begin = time.time()
    length = min(end - begin, CONTROL_SECONDS)
    with burning(extra * length / (end - begin), length):
        pass
    control_end = time.time()
    time.sleep(2)
    latencies = {name: _p95(world, name, begin, end) for name in others}
    control = {name: _p95(world, name, control_begin, control_end) for name in others}
    return Done(
        operation.__name__,
        detector,
        begin,
        end,
        world.alerts.silence(detector, begin - BEFORE_SECONDS, end),
        world.alerts.silence(detector, control_begin, control_end),
        {name: latencies[name] / control[name] for name in others},
        [line for name in others for line in world.watcher.disturbances(name, begin, end)],
    )


def _p95(world: World, detector: str, begin: float, end: float) -> float:
    return quantile(world.alerts.latencies(detector, begin, end), 0.95)


def _line(done: Done) -> str:
    return (
        f"{done.what:15} {done.detector:8} {done.end - done.begin - AFTER_SECONDS:6.1f} s  "
        f"silent {done.silence:5.2f} s (usual {done.usual:.2f})  "
        f"p95 of each other one to its control {', '.join(f'{ratio:.2f}' for ratio in done.ratios.values())}  "
        f"{'; '.join(done.disturbances) or 'undisturbed'}"
    )


def _summary(done: list[Done]) -> None:
    silent: dict[str, list[float]] = defaultdict(list)
    for d in done:
        silent[f"{d.what} {DETECTORS[d.detector]}"].append(d.silence - d.usual)
    for what, times in sorted(silent.items()):
        print(
            f"{what:25} longest silence of the touched one beyond the usual: {', '.join(f'{t:.2f}' for t in times)} s"
        )
    ratios = [ratio for d in done for ratio in d.ratios.values()]
    mean, above = sum(ratios) / len(ratios), [ratio for ratio in ratios if ratio > NOTICED]
    print(
        f"p95 of the others to their controls: mean {mean:.3f}, {len(above)} of {len(ratios)} above {NOTICED}",
        flush=True,
    )
    assert mean < NOTICED
