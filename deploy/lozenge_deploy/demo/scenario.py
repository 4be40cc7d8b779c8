"""The scenario of the demo: what starts when, how it is observed, and how it stops."""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lozenge.kafka import topic_admin
from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.demo.drain import Drain
from lozenge_deploy.demo.processes import NICE, Programs
from lozenge_deploy.demo.throughput import ThroughputMeter
from lozenge_deploy.demo.view import Frame, Stage
from lozenge_deploy.demo.webhook_receiver import Receiver
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from lozenge_deploy.local.topic_bootstrap import all_topics
from lozenge_deploy.releases.detector_catalog import DetectorFolder, rekeys_of
from lozenge_deploy.releases.environments import environment_of
from lozenge_deploy.supervision.restart_policy import ProgramState
from lozenge_deploy.supervision.supervisor import SupervisedProcess, Supervisor

PATIENCE_SECONDS = 60.0
"""The later detectors wait until the first one has processed a batch or failed, but not longer than this."""
START_SECONDS = 20.0
"""Each of them waits until the previous one has reported, but not longer than this."""


ORDER = ("rule", "stateful", "aggregate")
"""By kind: a rule is the fastest to its first alert, an aggregate the slowest."""


@dataclass(frozen=True)
class ScenarioPlan:
    """What to run; `seconds` of live traffic, None for without end."""

    detectors: list[DetectorFolder]
    past: int
    rate: float
    seed: int
    seconds: float | None


class Scenario:
    """Enter, `start`, then `tick` a few times a second; leaving stops every process, the broker last."""

    def __init__(self, plan: ScenarioPlan, work: Path, began: float) -> None:
        self._plan, self._work, self._began = plan, work, began
        self._detectors = sorted(plan.detectors, key=lambda d: ORDER.index(d.declaration.kind))
        self._first, *self._later = self._detectors
        self._stack = ExitStack()
        self.milestones: dict[str, float] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def start(self) -> None:
        """Starts broker, feed, both stages and the first detector; returns when they are started, not ready."""
        self._environments = self._prepare()
        broker = self._stack.enter_context(EmbeddedBroker(self._work / "broker"))
        self._reached("broker answers")
        self.kafka = KafkaSettings.local(broker.bootstrap)
        self._programs = programs = Programs(self.kafka, self._work, self._plan.past)
        self.receiver = self._stack.enter_context(Receiver(programs.secret))
        topic_admin.ensure_topics(self.kafka, all_topics(self.kafka.topics, self._detectors))
        self._reached("topics made")
        self.meter = ThroughputMeter(self.kafka)
        self._stack.callback(self.meter.close)
        self.drain = Drain(self.kafka, self._detectors)
        self._supervisor = self._stack.enter_context(Supervisor(self._work / "logs"))
        self._supervisor.start(programs.upstream(rekeys_of(self._detectors)))
        self._start_detector(self._first)
        self._supervisor.start(programs.downstream(self.receiver.url))
        self._supervisor.start(programs.feed(self._plan.rate, self._plan.seed, self._plan.seconds))
        self._reached("processes started")

    def tick(self) -> None:
        """Restarts what has ended, starts what is due, reads the newest figures."""
        self._supervisor.watch()
        self.meter.read()
        self._note_milestones()
        if self._later and self._may_start_next():
            self._start_detector(self._later.pop(0), NICE)

    @property
    def elapsed(self) -> float:
        """Seconds since the demo started."""
        return time.monotonic() - self._began

    @property
    def first_notification(self) -> float | None:
        """Seconds from the start to the first webhook; None before it."""
        return self.milestones.get("first notification")

    @property
    def feed_ended(self) -> bool:
        """Whether the feed has sent everything and written its summary."""
        return self._supervisor.children["feed"].state is ProgramState.ENDED

    @property
    def summary(self) -> Path:
        """The feed's summary."""
        return self._programs.summary

    def failed(self) -> dict[str, str]:
        """Processes that no restart can fix, with the newest errors of their logs."""
        return {n: c.last_error() for n, c in self._supervisor.children.items() if c.state is ProgramState.FAILED}

    def is_drained(self) -> bool:
        """Whether everything sent has reached the receiver and nothing changes; call it repeatedly."""
        notifier, distinct = self.meter.reading("downstream"), self.receiver.count()["distinct"]
        if self._later or notifier is None or distinct < notifier.emitted or self.drain.lags():
            return False
        return self.drain.settled(distinct)

    def stop_jobs(self) -> None:
        """Stops every process but broker and receiver."""
        self._supervisor.stop(self._supervisor.children)

    def frame(self, notice: str = "") -> Frame:
        """What the live view shows now."""
        return Frame(self.elapsed, self.first_notification, list(self._stages()), list(self.receiver.latest), notice)

    def _prepare(self) -> Mapping[str, Future[Path]]:
        """The environments, built one after the other while the broker starts; the first one is needed first."""
        workers = ThreadPoolExecutor(1)
        made = {d.name: workers.submit(environment_of, d.folder) for d in self._detectors}
        self._stack.callback(workers.shutdown, cancel_futures=True)
        return made

    def _start_detector(self, detector: DetectorFolder, nice: int = 0) -> None:
        python = self._environments[detector.name].result()
        self._supervisor.start(self._programs.detector(detector, python, nice))

    def _may_start_next(self) -> bool:
        """One after the other, so that no start disturbs what runs, or another start."""
        if not self._first_is_done() and self.elapsed < PATIENCE_SECONDS:
            return False
        if not self._environments[self._later[0].name].done():
            return False
        jobs = [child for name, child in self._supervisor.children.items() if name != "feed"]
        return not any(self._starting(child) and _age(child) < START_SECONDS for child in jobs)

    def _first_is_done(self) -> bool:
        """Whether the first detector has processed a batch, or will not."""
        if self._supervisor.children[self._first.name].state is ProgramState.FAILED:
            return True
        return self.first_notification is not None or f"{self._first.name} has done a batch" in self.milestones

    def _starting(self, child: SupervisedProcess) -> bool:
        """Whether it runs and has not published since its newest start."""
        reading = self.meter.reading(child.program.name)
        silent = reading is None or time.time() - reading.at > _age(child)
        return child.state is ProgramState.RUNNING and silent

    def _stages(self) -> Iterator[Stage]:
        children = self._supervisor.children
        yield Stage("feed", str(children["feed"].state), self.meter.sent())
        for name in ("upstream", *(d.name for d in self._detectors), "downstream"):
            if name not in children:
                yield Stage(name, "waiting")
                continue
            child = children[name]
            state = "starting" if self._starting(child) else str(child.state)
            trouble = child.last_error() if child.state in (ProgramState.WAITING, ProgramState.FAILED) else ""
            yield Stage(name, state, self.meter.reading(name), trouble)
        yield Stage("webhook", "running", self.meter.received(self.receiver.count()["received"]))

    def _note_milestones(self) -> None:
        for name in ("upstream", self._first.name):
            if reading := self.meter.reading(name):
                self._reached(f"{name} runs")
                if reading.records:
                    self._reached(f"{name} has done a batch")
        if self.receiver.count()["received"]:
            self._reached("first notification")

    def _reached(self, milestone: str) -> None:
        self.milestones.setdefault(milestone, round(self.elapsed, 1))


def _age(child: SupervisedProcess) -> float:
    return time.monotonic() - child.started_at


def result(checks: list[dict[str, Any]], scenario: Scenario) -> dict[str, Any]:
    """The result of an unattended run, for programs."""
    return {
        "ok": all(check["ok"] for check in checks),
        "seconds": round(scenario.elapsed, 1),
        "milestones": scenario.milestones,
        "reconciliation": checks,
    }
