"""What a client of a shared JVM uses there: the processor time of its tasks and of the threads of its queries."""

from contextlib import suppress
from typing import Any, cast

from pyspark.sql import SparkSession

from lozenge.spark.internals.driver_jvm import java, spark_context
from lozenge.spark.internals.gateways import TAG


class ClientUsage:
    """The processor time of one client, from now on; made by a thread of the client, and used by one thread.

    Assumes that all jobs of a client have the tag of its gateway, that Spark keeps the newest thousand jobs of a JVM
    with the processor time and the shuffled bytes of their stages, and that a query names the thread that plans its
    batches.
    """

    shuffle_bytes = 0
    """Written and read between the stages of the jobs that `task_seconds` has counted."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._tag = next(tag for tag in spark.sparkContext.getJobTags() if tag.startswith(TAG))
        self._stages: dict[int, set[int]] = {}  # of each job that is counted, as long as Spark keeps it
        self._task_time = 0
        self._planning: dict[int, int] = {}  # by thread, which no later one has the number of
        self._thread_time = _ThreadTime(spark)

    def task_seconds(self) -> float:
        """Of the tasks of all jobs that have ended, but for those that Spark dropped between two readings."""
        context = spark_context(self._spark)
        tracker, store = context.statusTracker(), context.statusStore()
        kept = self._numbers(tracker.getJobIdsForTag(self._tag))
        running = self._numbers(tracker.getActiveJobIds())  # asked later: what does not run now has ended
        self._stages = {job: stages for job, stages in self._stages.items() if job in kept}
        counted = set[int]().union(*self._stages.values())  # two jobs may have a stage in common
        for job in sorted(kept - running - self._stages.keys()):
            with suppress(Exception):  # py4j's: Spark has just dropped it
                self._stages[job] = stages = _parsed(store.job(job).stageIds().mkString(","))
                new, counted = stages - counted, counted | stages
                for stage in new:
                    self._count(store.lastStageAttempt(stage))
        return self._task_time / 1e9

    def _count(self, stage: Any) -> None:
        self._task_time += int(stage.executorCpuTime()) + int(stage.executorDeserializeCpuTime())
        self.shuffle_bytes += int(stage.shuffleReadBytes()) + int(stage.shuffleWriteBytes())

    def planning_seconds(self) -> float:
        """Of the threads of its queries, but for the time between the last reading and the end of one."""
        for query in self._spark.streams.active:
            thread = int(cast(Any, query)._jsq.streamingQuery().queryExecutionThread().getId())
            self._planning[thread] = max(self._planning.get(thread, 0), self._thread_time.of(thread))
        return sum(self._planning.values()) / 1e9

    def _numbers(self, array: Any) -> set[int]:
        """Of one of Java's arrays, whose items would be a call each."""
        return _parsed(java(self._spark).java.util.Arrays.toString(array).strip("[]"))


class _ThreadTime:
    """The processor time of Java's threads, by a method of the interface: the class that has it is hidden."""

    def __init__(self, spark: SparkSession) -> None:
        jvm, new_array = java(spark), cast(Any, spark.sparkContext)._gateway.new_array
        self._bean = jvm.java.lang.management.ManagementFactory.getThreadMXBean()
        types, self._arguments = new_array(jvm.java.lang.Class, 1), new_array(jvm.java.lang.Object, 1)
        types[0] = jvm.java.lang.Long.TYPE
        interface = jvm.java.lang.Class.forName("java.lang.management.ThreadMXBean")
        self._method = interface.getMethod("getThreadCpuTime", types)

    def of(self, thread: int) -> int:
        """Nanoseconds; -1 once it has ended."""
        self._arguments[0] = thread
        return int(self._method.invoke(self._bean, self._arguments))


def _parsed(text: str) -> set[int]:
    return {int(number) for number in text.split(",") if number.strip()}
