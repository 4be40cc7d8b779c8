"""Jobs in threads of one process: `python -m tests.integration.job.jobs_of_one_jvm FOLDER...`, a detector in each.

They have one JVM, whatever their mode, and end with it. The settings of their start come from the environment.
"""

import sys
import threading

from lozenge.detector.loader import find
from lozenge.job.lifecycle.job_factory import job_parts
from lozenge.job.lifecycle.job_loop import JobLoop
from lozenge.job.settings import JobSettings
from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.app_metrics import JobMetrics
from lozenge.process import logging
from lozenge.process.env_settings import load
from lozenge.spark.conf import most_slots
from lozenge.spark.session import spark_session


def main(*folders: str) -> None:
    logging.configure("jobs")
    job, kafka = load(JobSettings, KafkaSettings)
    slots = len(folders) * most_slots(kafka.topics.partitions)
    spark = spark_session("jobs", cores=slots, memory_mb=1024)
    found = [find(folder) for folder in folders]
    loops = [JobLoop(job_parts(each, job, kafka, spark, JobMetrics(each.name))) for each in found]
    threads = [threading.Thread(target=loop.run) for loop in loops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
