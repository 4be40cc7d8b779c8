"""What a process with a session on a host costs, of the host's JVM too."""

from contextlib import suppress

import psutil
from pyspark.sql import SparkSession

from lozenge.process.usage import Cost, Meter
from lozenge.spark.internals.client_usage import ClientUsage
from lozenge.spark.internals.driver_jvm import jvm_pid
from lozenge.spark.internals.gateways import CLIENT, gateways


class SharedMeter:
    """Measures this process, a client of a host, and its part of the host; used by one thread.

    Processor time: of this process, its Python workers, its Spark tasks, and the planning of its queries. Memory: of
    this process and its workers, and that of the JVM divided by its clients. What the JVM does for all clients at once,
    such as collecting garbage and compiling, is nobody's.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._client = spark, spark.sparkContext.environment[CLIENT]
        self._java = psutil.Process(jvm_pid(spark))
        self._usage = ClientUsage(spark)
        self._tasks = self._planning = 0.0
        self._processes = Meter(also=self._workers)

    def read(self) -> Cost:
        """The cost until now. If the JVM does not answer, its part is that of the last reading."""
        processes, share = self._processes.read(), 0
        with suppress(Exception):  # py4j's and psutil's: the JVM has ended
            self._tasks, self._planning = self._usage.task_seconds(), self._usage.planning_seconds()
            share = self._java.memory_info().rss // max(1, gateways(self._spark))
        parts = {"process": processes.cpu_seconds, "tasks": self._tasks, "planning": self._planning}
        memory = processes.memory_bytes + share
        return Cost(sum(parts.values()), memory, parts, self._usage.shuffle_bytes)

    def _workers(self) -> list[psutil.Process]:
        """Spark's Python processes that run functions of this client, without the workers below them."""
        found = []
        with suppress(psutil.Error):
            for process in self._java.children():
                with suppress(psutil.Error):
                    if process.environ().get(CLIENT) == self._client:
                        found.append(process)
        return found
