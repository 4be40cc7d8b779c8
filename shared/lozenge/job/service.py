"""Runs one detector, from the settings of its start to its exit code."""

import sys

from lozenge.detector.loader import find
from lozenge.errors import ConfigError, Fenced, LozengeError, SparkGone, StaleGeneration, first_line
from lozenge.job.effective_config import EffectiveConfig, JobSpecFile
from lozenge.job.identity import Identity
from lozenge.job.settings import JobSettings
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.metrics.app_metrics import JobMetrics
from lozenge.metrics.reporter import Reporter
from lozenge.process import logging
from lozenge.process.env_settings import load
from lozenge.process.memory import trim_heap
from lozenge.process.periodic import every
from lozenge.process.shutdown import stopped_by_signals
from lozenge.protocol.job_status import HOST_GONE
from lozenge.spark.internals.python_api import read_types_without_session

RELEASE_SECONDS = 5.0
"""How often memory goes back that batches no longer use."""


def main() -> int:
    """Runs until a signal or an error; returns the exit code."""
    logging.configure("job")
    debug = shares = False
    try:
        job, kafka = load(JobSettings, KafkaSettings)
        debug, shares = job.debug, job.host is not None
        logging.configure("job", instance=job.instance, debug=debug, release=job.release)  # until the name is known
        read_types_without_session()
        loaded = find(sys.argv[1] if len(sys.argv) > 1 else None)
        identity = Identity.of(loaded, job, kafka.topics)
        logging.configure(identity.app, instance=job.instance, debug=debug, release=job.release)
        EffectiveConfig.of(loaded, JobSpecFile(job).current)
        partitions(kafka)  # settings and broker are checked before the JVM starts, which takes seconds
        from lozenge.host.client import SharedJvm
        from lozenge.job.lifecycle.job_factory import job_parts, slots
        from lozenge.job.lifecycle.job_loop import JobLoop  # Spark is imported only once it is needed
        from lozenge.spark.conf import JOB_NEW_MB
        from lozenge.spark.session_provider import OwnJvm, SessionProvider, SessionRequest

        declared = loaded.declaration.resources
        if job.master is not None and loaded.declaration.mode.holds_slots:
            raise ConfigError(
                f"starting {identity.app} on {job.master}: a job in Real-Time Mode runs in its own process",
                hint='unset LOZENGE_JOB_MASTER, or remove mode = "realtime"',
            )
        if job.host is not None and (loaded.declaration.mode.holds_slots or job.master is not None):
            raise ConfigError(
                f"starting {identity.app} on the Spark host in {job.host}: its tasks would keep the cores of others",
                hint='unset LOZENGE_JOB_HOST, or remove mode = "realtime" and LOZENGE_JOB_MASTER',
            )
        cores = max(job.cores or declared.cores, slots(loaded.declaration, kafka.partitions))
        memory_mb = job.memory_mb or declared.memory_mb
        sessions: SessionProvider = OwnJvm() if job.host is None else SharedJvm(job.host)
        request = SessionRequest(identity.app, cores, memory_mb, JOB_NEW_MB, job.master, result_mb=memory_mb // 4)
        spark = sessions.start(request)
        metrics = JobMetrics(identity.app, job.instance, job.release)
        loop = JobLoop(job_parts(loaded, job, kafka, spark, metrics))
        doing = f"running {identity.app}"
        with (
            stopped_by_signals(loop.stop, doing),
            sessions.held(spark, doing, loop.stopping),
            Reporter(metrics, kafka, meter=sessions.meter(spark)),
            every(RELEASE_SECONDS, _release_memory, "release memory"),
        ):
            loop.run()
        return 0
    except LozengeError as error:
        if debug:
            raise
        replaced = isinstance(error, Fenced | StaleGeneration)  # the usual end of a job that another one replaces
        log = logging.logger().info if replaced else logging.logger().error
        log(error.message, hint=error.hint, kind=type(error).__name__)
        return HOST_GONE if shares and isinstance(error, SparkGone) else error.exit_code
    except Exception as error:
        if debug:
            raise
        # unexpected: the log has the whole stack
        logging.logger().critical(f"the job failed: {type(error).__name__}: {first_line(error)}", exc_info=True)
        return 1


def _release_memory() -> None:
    """Gives back what batches have taken: a job is idle most of the time, and memory decides how many fit."""
    import pyarrow as pa  # Spark has imported it

    pa.default_memory_pool().release_unused()
    trim_heap()
