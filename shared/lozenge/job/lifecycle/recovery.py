"""What a job changes after a failed batch, so that the next start of its query gets further."""

import re

from pyspark.sql import SparkSession

from lozenge.errors import DetectorError, LozengeError, first_line
from lozenge.job.lifecycle.status_reporter import JobStatusReporter
from lozenge.job.query.batch_limit import BatchLimit
from lozenge.job.query.poison_search import Ranges, find_poison
from lozenge.job.query.query_builder import QueryBuilder
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.process.logging import logger
from lozenge.spark.avro import UNKNOWN_SCHEMA, words_of
from lozenge.spark.checkpoint import Checkpoint
from lozenge.spark.internals import errors
from lozenge.spark.jvm_watch import require_running


class Recovery:
    """Learns a new schema, halves the batch, renews the checkpoint, or excludes failing records."""

    def __init__(
        self,
        app: str,
        builder: QueryBuilder,
        checkpoint: Checkpoint,
        kafka: KafkaSettings,
        spark: SparkSession,
        reporter: JobStatusReporter,
    ) -> None:
        self._app, self._builder, self._checkpoint = app, builder, checkpoint
        self._kafka, self._spark = kafka, spark
        self._reporter = reporter

    def after(self, error: Exception, batch: int, ranges: Ranges, limit: BatchLimit | None) -> None:
        """Changes the plan, the checkpoint or the limit after `batch`, which read `ranges`, failed; or raises."""
        if isinstance(error, LozengeError):
            raise error
        log = logger()
        if limit is not None and errors.is_result_too_large(error):
            if not limit.shrink():
                raise DetectorError(
                    f"running {self._app}: the result of one event is too large for the driver: {first_line(error)}",
                    hint='emit fewer alerts of one event, or set memory_mb = ... and isolation = "own" in the manifest',
                ) from error
            self._checkpoint.forget(batch)
            log.warning("batch too large for the driver, halved", max_batch=limit.value)
            return
        if errors.is_other_state(error):
            self._checkpoint.renew()
            log.warning("checkpoint does not fit these settings, open windows are counted again")
            return
        unknown = re.search(UNKNOWN_SCHEMA + r":(\d+)", str(error))
        if unknown and int(unknown.group(1)) in self._builder.events.learn():
            log.info("schema learned, query starts again", schema=int(unknown.group(1)))
            return
        self._require_healthy()
        if words_of(str(error)) and (malformed := self._builder.events.exclude_malformed(ranges)):
            log.warning("malformed records sent to the dead-letter topic", count=len(malformed))
            return
        found = find_poison(ranges, self._evaluate)
        if not found:
            raise DetectorError(
                f"running {self._app}: a batch failed, though no record fails alone: {first_line(error)}",
                hint="see the log above; the job restarts at its committed offsets",
            ) from error
        for record in found:
            self._builder.exclude(record)
        log.warning("records sent to the dead-letter topic", count=len(found), error=first_line(found[0].error))

    def _evaluate(self, ranges: Ranges) -> None:
        self._reporter.progressed()  # a long search is no hang
        try:
            self._builder.evaluate(ranges)
        except LozengeError:
            raise
        except Exception:
            self._require_healthy()
            raise

    def _require_healthy(self) -> None:
        """Raises if the JVM has ended or the broker does not answer: no record is blamed for either."""
        require_running(self._spark, f"running {self._app}")
        partitions(self._kafka)
