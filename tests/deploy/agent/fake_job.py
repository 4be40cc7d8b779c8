"""A job without Spark and Kafka, as a process.

It imports little, since tests start many of them.

Usage: `fake_job.py BEHAVIOUR`, run in the folder of its job.
"""

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

from lozenge.job.lifecycle.status_reporter import JobStatusReporter
from lozenge.protocol.job_status import JobStatus
from tests.deploy.agent.job_behaviours import steps


class _Process:
    """The inside of a job, over the files in its folder."""

    def __init__(self, folder: Path) -> None:
        self.stopped = False
        self._folder, self._reporter = folder, JobStatusReporter(folder)
        signal.signal(signal.SIGTERM, self._stop)

    def now(self) -> float:
        return time.time()

    def read_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = json.loads((self._folder / "job_spec.json").read_text("utf-8"))
        return spec

    def reported(self) -> JobStatus:
        return self._reporter.status

    def report(self, **values: Any) -> None:
        self._reporter.update(**values)

    def has(self, name: str) -> bool:
        return (self._folder.parent / name).exists()

    def _stop(self, *_: object) -> None:
        self.stopped = True


for _ in steps(sys.argv[1], _Process(Path.cwd())):
    time.sleep(0.02)
