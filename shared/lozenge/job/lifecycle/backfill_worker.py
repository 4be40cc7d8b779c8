"""Judges beside the running job what its detector left behind at a start, because the newest events come first.

The gaps in its coverage say what that is, so a kill costs one step, and whoever is live next goes on. Between two steps
it rests as long as the last one took: at least half of the time belongs to what is new.
"""

import threading
import time

from pyspark.sql import SparkSession

from lozenge.detector.loader import LoadedDetector
from lozenge.errors import Fenced
from lozenge.job.query.poison_search import first_line
from lozenge.job.settings import JobSettings
from lozenge.job.tools.backfill import fill
from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.app_metrics import Metrics
from lozenge.process.logging import logger
from lozenge.protocol.coverage import left_behind

LAST_STEP_SECONDS = 5.0


class BackfillWorker:
    """A thread of a live job, in its session. It ends when nothing is left, when stopped, or when another one fills."""

    def __init__(
        self, loaded: LoadedDetector, job: JobSettings, kafka: KafkaSettings, spark: SparkSession, metrics: Metrics
    ) -> None:
        self._loaded, self._job, self._kafka, self._spark = loaded, job, kafka, spark
        self._metrics = metrics
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begins with the oldest event that was left behind."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(self._stop,), name="behind", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """No step begins after this; waits a while for the one that runs, else it is judged again."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(LAST_STEP_SECONDS)
            self._thread = None

    def _run(self, stop: threading.Event) -> None:
        try:
            began = time.monotonic()
            for step in fill(self._loaded, self._job, self._kafka, left_behind, self._spark):
                self._metrics.records(step.events)
                self._metrics.emitted(step.alerts)
                logger().info("judged of what was left behind", events=step.events, alerts=step.alerts, left=step.left)
                if stop.wait(time.monotonic() - began):
                    return
                began = time.monotonic()
        except Fenced:
            logger().info("what was left behind is judged by another process now")
        except Exception as error:  # whatever Spark or the author's code raises, the job goes on
            if not stop.is_set():
                hint = f"the next start goes on with it, or `lozenge fill {self._loaded.name}`"
                logger().error(f"judging what {self._loaded.name} left behind: {first_line(error)}", hint=hint)
