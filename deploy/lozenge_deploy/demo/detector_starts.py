"""The starts of the detectors: one after the other, so that no start disturbs what runs, or another start.

A stream that the first detector does not read gets its normaliser just before the first of its detectors.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from lozenge.host.log_attribution import APP as SPARK_HOST
from lozenge.streams.definition import StreamDefinition
from lozenge_deploy.demo.milestones import Milestones
from lozenge_deploy.demo.processes import NICE, Programs
from lozenge_deploy.demo.throughput import ThroughputMeter
from lozenge_deploy.observe.metrics_reader import Reading
from lozenge_deploy.releases.detector_catalog import DetectorFolder, streams_of
from lozenge_deploy.releases.environments import environment_of
from lozenge_deploy.supervision.restart_policy import ProgramState
from lozenge_deploy.supervision.supervisor import Program, SupervisedProcess, Supervisor

PATIENCE_SECONDS = 60.0
"""The later detectors wait until the first one has processed a batch or failed, but not longer than this."""
START_SECONDS = 20.0
"""Each of them waits until the previous one has reported, but not longer than this."""

_NO_DETECTORS = ("feed", SPARK_HOST)
"""What reports no figures of its own."""

Environments = Mapping[str, Future[Path]]
"""The Python of each detector's environment, once it is built."""


class DetectorStarts:
    """Starts the detectors of a run in their order; `meter` and `milestones` say how far the earlier ones are."""

    def __init__(
        self,
        detectors: Sequence[DetectorFolder],
        environments: Environments,
        programs: Programs,
        normaliser: Callable[[StreamDefinition], Program],
        supervisor: Supervisor,
        meter: ThroughputMeter,
        milestones: Milestones,
    ) -> None:
        self._first, self._waiting = detectors[0].name, list(detectors)
        self._environments, self._programs, self._supervisor = environments, programs, supervisor
        self._normaliser = normaliser
        self._meter, self._milestones = meter, milestones

    @property
    def complete(self) -> bool:
        """Whether every detector was started."""
        return not self._waiting

    def start_next(self) -> None:
        """Starts what is due: their Spark host, then one process after the other; call it a few times a second."""
        if not self._waiting or not self._may_start_next():
            return
        for stream in streams_of(self._waiting[:1]):
            if stream.app not in self._supervisor.children:
                self._supervisor.start(self._normaliser(stream))
                return
        detector = self._waiting.pop(0)
        python = self._environments[detector.name].result()
        nice = 0 if detector.name == self._first else NICE
        self._supervisor.start(self._programs.detector(detector, python, nice))

    def _may_start_next(self) -> bool:
        environment = self._environments[self._waiting[0].name]
        if not environment.done() or not self._host_is_ready():
            return False
        if self._first not in self._supervisor.children:
            return True
        if not self._first_is_done() and self._milestones.elapsed < PATIENCE_SECONDS:
            return False
        jobs = {name: child for name, child in self._supervisor.children.items() if name not in _NO_DETECTORS}
        return not any(
            is_starting(child, self._meter.reading(name)) and _age(child) < START_SECONDS
            for name, child in jobs.items()
        )

    def _host_is_ready(self) -> bool:
        """Starts it in the environment of the first detector, once that is built."""
        if SPARK_HOST not in self._supervisor.children:
            self._supervisor.start(self._programs.spark_host(self._environments[self._first].result()))
        return self._programs.host_is_ready(self._supervisor.children[SPARK_HOST].pid)

    def _first_is_done(self) -> bool:
        """Whether the first detector has processed a batch, or will not."""
        if self._supervisor.children[self._first].state is ProgramState.FAILED:
            return True
        return self._milestones.first_notification is not None or self._milestones.has_done_a_batch(self._first)


@contextmanager
def environments_of(detectors: Iterable[DetectorFolder]) -> Iterator[Environments]:
    """The environments, built one after the other in the background; the end cancels those that are not begun."""
    workers = ThreadPoolExecutor(1)
    try:
        yield {d.name: workers.submit(environment_of, d.folder) for d in detectors}
    finally:
        workers.shutdown(cancel_futures=True)


def is_starting(child: SupervisedProcess, reading: Reading | None) -> bool:
    """Whether an app runs and has not published since its newest start; `reading` are its newest figures."""
    silent = reading is None or time.time() - reading.at > _age(child)
    return child.state is ProgramState.RUNNING and silent


def _age(child: SupervisedProcess) -> float:
    return time.monotonic() - child.started_at
