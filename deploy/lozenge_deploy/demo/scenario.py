"""The scenario of the demo: what starts when, how it is observed, and how it stops."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lozenge.host.log_attribution import APP as SPARK_HOST
from lozenge.kafka import topic_admin
from lozenge.kafka.settings import KafkaSettings
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.project import Streams
from lozenge_deploy.demo.detector_starts import DetectorStarts, environments_of, is_starting
from lozenge_deploy.demo.drain import Drain
from lozenge_deploy.demo.milestones import FIRST_NOTIFICATION, Milestones
from lozenge_deploy.demo.processes import Programs
from lozenge_deploy.demo.running_extras import extras_of
from lozenge_deploy.demo.sinks.extras import Extra
from lozenge_deploy.demo.throughput import ThroughputMeter
from lozenge_deploy.demo.view import Frame, Stage
from lozenge_deploy.demo.webhook_receiver import Receiver
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from lozenge_deploy.local.topic_bootstrap import all_topics
from lozenge_deploy.releases.detector_catalog import DetectorFolder, merges_of, rekeys_of, streams_of
from lozenge_deploy.supervision.restart_policy import ProgramState
from lozenge_deploy.supervision.supervisor import Program, Supervisor

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
    extras: tuple[Extra, ...] = ()


class Scenario:
    """Enter, `start`, then `tick` a few times a second; leaving stops every process, the broker last."""

    def __init__(self, plan: ScenarioPlan, began: float) -> None:
        self._plan = plan
        self._detectors = sorted(plan.detectors, key=lambda d: ORDER.index(d.declaration.kind))
        self._stack = ExitStack()
        self.milestones = Milestones(began)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def start(self, work: Path) -> None:
        """Starts broker, feed, its file source and both stages, and returns before they are ready.

        All files are in `work`. The detectors start in `tick`, and after them the sinks.
        """
        environments = self._stack.enter_context(environments_of(self._detectors))  # while the broker starts
        streams = Streams.load(self._detectors[0].folder)
        self.extras = self._stack.enter_context(extras_of(self._plan.extras, streams, work))
        broker = self._stack.enter_context(EmbeddedBroker(work / "broker"))
        self.milestones.reached("broker answers")
        self.kafka = KafkaSettings.local(broker.bootstrap)
        self._programs = programs = Programs(self.kafka, streams.folder, work, self._plan.past)
        self.receiver = self._stack.enter_context(Receiver(programs.secret))
        topics = all_topics(self.kafka.topics, streams.definitions, self._detectors)
        topic_admin.ensure_topics(self.kafka, [*topics, *self.extras.topics(self.kafka)])
        self.extras.sinks.deploy(self.kafka)
        self.milestones.reached("topics made")
        self.meter = ThroughputMeter(self.kafka)
        self._stack.callback(self.meter.close)
        self.drain = Drain(self.kafka, streams_of(self._detectors), self._detectors, self.extras)
        self._supervisor = self._stack.enter_context(Supervisor(work / "logs"))
        self._stack.callback(self.stop_jobs)
        for stream in streams_of(self._detectors[:1]):
            self._supervisor.start(self._normaliser(stream))
        self._starts = DetectorStarts(
            self._detectors, environments, programs, self._normaliser, self._supervisor, self.meter, self.milestones
        )
        self._supervisor.start(programs.downstream(self.receiver.url))
        self._supervisor.start(
            programs.feed(self._plan.rate, self._plan.seed, self._plan.seconds, self.extras.sources.folder)
        )
        self.extras.sources.start(self.kafka, programs, self._supervisor)
        self.milestones.reached("processes started")

    def tick(self) -> None:
        """Restarts what has ended, starts what is due, reads the newest figures."""
        self._supervisor.watch()
        self.meter.read()
        self._note_milestones()
        self._starts.start_next()
        if self._starts.complete:
            self.extras.sinks.start(self._programs, self._supervisor)

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
        if not self._starts.complete or notifier is None or distinct < notifier.emitted or self.drain.lags():
            return False
        return self.drain.settled(distinct)

    def stop_jobs(self) -> None:
        """Stops every process but broker and receiver, the Spark host behind the detectors that it serves."""
        children = self._supervisor.children
        self._supervisor.stop([name for name in children if name != SPARK_HOST])
        self._supervisor.stop(children)

    def frame(self, notice: str = "") -> Frame:
        """What the live view shows now."""
        elapsed, first = self.milestones.elapsed, self.milestones.first_notification
        return Frame(elapsed, first, list(self._stages()), list(self.receiver.latest), notice)

    def _stages(self) -> Iterator[Stage]:
        children = self._supervisor.children
        yield Stage("feed", str(children["feed"].state), self.meter.sent())
        detectors = (detector.name for detector in self._detectors)
        extras = self.extras
        for name in (*extras.sources.apps, *self._normalisers(), *detectors, "downstream", *extras.sinks.apps):
            if name not in children:
                yield Stage(name, "waiting")
                continue
            child = children[name]
            reading = self.meter.reading(name)
            state = "starting" if is_starting(child, reading) else str(child.state)
            trouble = child.last_error() if child.state in (ProgramState.WAITING, ProgramState.FAILED) else ""
            yield Stage(name, state, reading, trouble)
        yield Stage("webhook", "running", self.meter.received(self.receiver.count()["received"]))

    def _normaliser(self, stream: StreamDefinition) -> Program:
        rekeys, merges = rekeys_of(stream, self._detectors), merges_of(stream, self._detectors)
        return self._programs.normaliser(stream, rekeys, merges)

    def _normalisers(self) -> list[str]:
        return [stream.app for stream in streams_of(self._detectors)]

    def _note_milestones(self) -> None:
        for name in (*self._normalisers(), self._detectors[0].name):
            self.milestones.reported(name, self.meter.reading(name))
        if self.receiver.count()["received"]:
            self.milestones.reached(FIRST_NOTIFICATION)


def result(checks: list[dict[str, Any]], scenario: Scenario) -> dict[str, Any]:
    """The result of an unattended run, for programs."""
    return {
        "ok": all(check["ok"] for check in checks),
        "seconds": round(scenario.milestones.elapsed, 1),
        "milestones": scenario.milestones.seconds,
        "reconciliation": checks,
    }
