"""Twenty operations on single detectors under traffic, and what the others notice of them: nothing.

    python -m pytest -q -s tests/bench/test_hot_deploy.py        LOZENGE_SOAK_OPERATIONS=20 LOZENGE_SOAK_SEED=4

Five detectors, two of them stateful, judge 300 events a second. After each operation a control of the same length
burns the same processor time, niced, without any operation; the latency of the others is compared with that.
Every detector's alerts are held against what the traffic should have raised: each once. At the end one detector is
stopped inside its transaction, and the events gain a field.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from lozenge import topics
from lozenge.admin import ensure_topics, partitions
from lozenge.avro import Codec
from lozenge.job.report import read_report
from lozenge.kafka import KafkaSettings
from lozenge.reading import bounds
from lozenge.registry import announce
from lozenge_deploy.agent.instance import instances
from lozenge_deploy.broker import EmbeddedBroker
from lozenge_deploy.cli.scaffold import write
from tests.bench.soak import Alerts, Traffic, Watcher, burning, processor_seconds, quantile
from tests.integration.harness import STOPS_IN_A_TRANSACTION, wider_events

RATE = 300
OPERATIONS = int(os.environ.get("LOZENGE_SOAK_OPERATIONS", "20"))
SEED = int(os.environ.get("LOZENGE_SOAK_SEED", "4"))
DETECTORS = {"rule_a": "rule", "rule_b": "rule", "rule_c": "rule", "fold_a": "stateful", "fold_b": "stateful"}
TRIGGER = os.environ.get("LOZENGE_SOAK_TRIGGER", "2s")
"""Five jobs with a batch a second keep two cores so busy that nothing is left for a start."""
CONTROL_SECONDS = 20.0
STOPPED_SECONDS = 20.0
NOTICED = 1.10
"""A latency this much above its control's would be noticed."""
AFTER_SECONDS, BEFORE_SECONDS = 6.0, 3.0
DEADLINE_SECONDS = 300.0


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


class World:
    """A broker, an agent, a scratch checkout with the five detectors, traffic and whoever looks on."""

    def __init__(self, folder: Path, kafka: KafkaSettings) -> None:
        self.folder, self.jobs, self.kafka, self.stop = folder, folder / "jobs", kafka, folder / "stop-now"
        self._environment = os.environ | {"LOZENGE_KAFKA_BOOTSTRAP": kafka.bootstrap}
        self.detectors = folder / "detectors"
        self.detectors.mkdir()
        (folder / "pyproject.toml").touch()
        self._versions: Counter[str] = Counter()
        self._chance = random.Random(SEED)
        self._agent: subprocess.Popen[bytes] | None = None
        self.traffic = Traffic(kafka, RATE)
        self.alerts = Alerts(kafka, self.traffic, list(DETECTORS))
        self.watcher = Watcher(self.jobs)

    def lozenge(self, *arguments: str) -> None:
        """Runs the command as an operator would."""
        command = [sys.executable, "-m", "lozenge_deploy.cli", *arguments]
        run = subprocess.run(command, env=self._environment, cwd=self.folder, capture_output=True, text=True)
        assert run.returncode == 0, f"{' '.join(arguments)}: {run.stdout}{run.stderr}"

    def show_cost(self, when: str) -> None:
        """What each detector takes, as an operator sees it."""
        print(f"{when}:", flush=True)
        command = [sys.executable, "-m", "lozenge_deploy.cli", "status"]
        subprocess.run(command, env=self._environment, cwd=self.folder, check=True)

    def start_agent(self) -> None:
        """Starts an agent; a job outlives it."""
        with (self.folder / "agent.log").open("ab") as log:
            command = [sys.executable, "-m", "lozenge_deploy.agent", str(self.jobs)]
            self._agent = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)

    def kill_agent(self) -> None:
        """As a crash does."""
        assert self._agent
        self._agent.kill()
        self._agent.wait()

    def end(self) -> None:
        """Leaves nothing running."""
        self.watcher.end()
        self.alerts.end()
        assert self._agent
        self._agent.terminate()
        self._agent.wait()
        for detector in DETECTORS:
            for instance in instances(self.jobs / detector):
                instance.kill()

    def pid(self, detector: str) -> int:
        """The process of the live job."""
        for instance in instances(self.jobs / detector):
            report = read_report(instance.folder)
            if report is not None and report.phase == "live" and instance.alive():
                return report.pid
        raise AssertionError(f"{detector} does not run")

    # operations

    def update(self, detector: str, code: str = "") -> None:
        self._versions[detector] += 1
        module = self.detectors / detector / f"{detector}.py"
        text = module.read_text("utf-8").split("\n# version")[0]
        module.write_text(f"{text}\n# version {self._versions[detector]}\n{code}", "utf-8")
        self.lozenge("deploy", detector)

    def rollback(self, detector: str) -> None:
        if self._versions[detector] == 0:
            self.update(detector)
        self.lozenge("rollback", detector)

    def set(self, detector: str) -> None:
        value = self._chance.randint(400, 800)
        name = "limit" if DETECTORS[detector] == "rule" else "within"
        self.lozenge("set", detector, f"{name}={value}{'' if name == 'limit' else 's'}")

    def pause(self, detector: str) -> None:
        self.lozenge("pause", detector)
        self.lozenge("resume", detector)

    def retire(self, detector: str) -> None:
        self.lozenge("retire", detector)
        self.lozenge("deploy", detector)

    def restart(self, detector: str) -> None:
        self.lozenge("restart", detector)

    def kill_job(self, detector: str) -> None:
        before = self.pid(detector)
        os.kill(before, signal.SIGKILL)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            time.sleep(0.2)
            try:
                if self.pid(detector) != before:
                    return
            except AssertionError:
                continue
        raise AssertionError(f"{detector} was not started again")

    def kill_the_agent(self, detector: str) -> None:
        self.kill_agent()
        self.start_agent()
        self.lozenge("set", detector, "--max-batch", str(self._chance.randint(50_000, 200_000)))

    def stop_inside_a_transaction(self, detector: str) -> None:
        pid = self.pid(detector)
        self.stop.touch()
        deadline = time.monotonic() + DEADLINE_SECONDS
        while psutil.Process(pid).status() != psutil.STATUS_STOPPED:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(STOPPED_SECONDS)
        os.kill(pid, signal.SIGCONT)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator["World"]:
    folder = tmp_path_factory.mktemp("soak")
    broker = EmbeddedBroker(folder / "broker", heap_mb=512)
    with broker:
        kafka = KafkaSettings(bootstrap=broker.bootstrap)
        ensure_topics(kafka, topics.platform_topics())
        ensure_topics(kafka, [topic for name in DETECTORS for topic in topics.detector_topics(name)])
        world = World(folder, kafka)
        for name, kind in DETECTORS.items():
            write(world.detectors, name, kind, "soak")
            project = world.detectors / name / "pyproject.toml"
            project.write_text(f'{project.read_text("utf-8").rstrip()}\ntrigger = "{TRIGGER}"\n', "utf-8")
        world.start_agent()
        for thread in (world.traffic, world.alerts, world.watcher):
            thread.start()
        try:
            for name in DETECTORS:
                began = time.monotonic()
                world.lozenge("deploy", name)
                print(f"deploy {name}, the first time: {time.monotonic() - began:.1f} s", flush=True)
            yield world
        finally:
            world.end()


def test_twenty_operations_on_single_detectors_and_nobody_else_notices(world: World) -> None:
    chance = random.Random(SEED)
    kinds: list[Callable[[str], None]] = [
        *(world.update, world.rollback, world.set, world.pause),
        *(world.retire, world.restart, world.kill_job, world.kill_the_agent),
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
    world.update("rule_b", STOPS_IN_A_TRANSACTION.format(file=world.stop))
    time.sleep(10)
    done.append(_one(world, world.stop_inside_a_transaction, "rule_b", idle))
    print(_line(done[-1]), flush=True)
    _gain_a_field(world)
    world.show_cost("under load")
    world.traffic.end()
    _summary(done)
    wrong = _await_all(world)
    time.sleep(30)
    world.show_cost("at rest")
    print(json.dumps(wrong) if wrong else "every event's alert exactly once, in all five", flush=True)
    assert not wrong
    assert not [line for d in done for line in d.disturbances]
    there = partitions(world.kafka)
    dead = [topics.dead_letters(name) for name in DETECTORS]
    letters = sum(end for topic in dead for _, end in bounds(world.kafka, topic, there[topic]).values())
    print(f"dead letters: {letters}", flush=True)
    assert not letters


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
    time.sleep(2)  # what was sent within is told
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


def _await_all(world: World) -> dict[str, str]:
    """Waits until everything sent has been judged; what is missing or told twice, by detector."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        wrong = {}
        for name, kind in DETECTORS.items():
            expected = world.traffic.large if kind == "rule" else world.traffic.moved
            counts = Counter(told.event_id for told in list(world.alerts.told[name]))
            missing, twice = len(expected - counts.keys()), sum(n > 1 for n in counts.values())
            unexpected = len(counts.keys() - expected)
            if missing or twice or unexpected:
                wrong[name] = f"{missing} missing, {twice} twice, {unexpected} unexpected of {len(expected)}"
        if not wrong or time.monotonic() > deadline:
            return wrong
        time.sleep(0.5)
