"""Backfills what the detector skipped at a start, concurrently with the live query, because the newest events go first.

The gaps in the coverage say what is left, so a kill costs one step and the next live job resumes. After each step the
worker rests for as long as the step took, so at least half of the time is left to new events.
"""

import threading
import time

from pyspark.sql import SparkSession

from lozenge.detector.loader import LoadedDetector
from lozenge.errors import Fenced, first_line
from lozenge.job.settings import JobSettings
from lozenge.job.tools.backfill import backfill
from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.app_metrics import JobMetrics
from lozenge.process.logging import logger
from lozenge.protocol.coverage import backfill_gaps

LAST_STEP_SECONDS = 5.0
"""How long `stop` waits for the running step."""


class BackfillWorker:
    """A thread of a live job, in its session. It ends when no gap is left, when stopped, or when it is fenced."""

    def __init__(
        self, loaded: LoadedDetector, job: JobSettings, kafka: KafkaSettings, spark: SparkSession, metrics: JobMetrics
    ) -> None:
        self._loaded, self._job, self._kafka, self._spark = loaded, job, kafka, spark
        self._metrics = metrics
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts with the oldest skipped event."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(self._stop,), name="backfill", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Starts no further step, and waits a while for the running one; a step that is cut off is repeated later."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(LAST_STEP_SECONDS)
            self._thread = None

    def _run(self, stop: threading.Event) -> None:
        try:
            began = time.monotonic()
            for step in backfill(self._loaded, self._job, self._kafka, backfill_gaps, self._spark):
                self._metrics.records(step.events)
                self._metrics.emitted(step.alerts)
                logger().info(
                    "backfill step committed", events=step.events, alerts=step.alerts, remaining=step.remaining
                )
                if stop.wait(time.monotonic() - began):
                    return
                began = time.monotonic()
        except Fenced:
            logger().info("backfill stopped: fenced by a newer process")
        except Exception as error:  # whatever Spark or the author's code raises, the live query keeps running
            if not stop.is_set():
                hint = f"the next start of the job resumes it, or run `lozenge backfill {self._loaded.name}`"
                logger().error(f"backfilling {self._loaded.name}: {first_line(error)}", hint=hint)
