"""The JVM of a session, and the process that it is."""

import subprocess
from typing import Any, cast

from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession


def java(spark: SparkSession) -> Any:
    """Public classes of Java and of Kafka's clients, by their full names as attributes.

    Assumes that PySpark drives its JVM by py4j, and that Kafka's clients are on the driver's class path.
    """
    return cast(Any, spark._jvm)


def accept_callbacks(spark: SparkSession) -> None:
    """Lets Java call Python objects that name the Java interfaces which they implement.

    Assumes that PySpark starts py4j's callback server on request, as it does for its own listeners.
    """
    ensure_callback_server_started(cast(Any, spark.sparkContext)._gateway)  # type: ignore[no-untyped-call]


def spark_runs_here() -> bool:
    """Whether this process has Spark, in a JVM of its own or a shared one. Assumes that PySpark keeps its context."""
    return SparkContext._active_spark_context is not None


def jvm_has_answered() -> bool:
    """Whether the JVM of this process has named its port. Assumes that PySpark keeps the gateway from then on."""
    return SparkContext._gateway is not None


def jvm_process(spark: SparkSession) -> "subprocess.Popen[bytes]":
    """The process that runs the JVM, which ends when its standard input is closed.

    Assumes that PySpark starts it as a child and keeps it at the gateway.
    """
    return cast("subprocess.Popen[bytes]", cast(Any, spark.sparkContext)._gateway.proc)


def jvm_pid(spark: SparkSession) -> int:
    """The process id of the JVM, also of one that another process has started."""
    return int(java(spark).java.lang.ProcessHandle.current().pid())


def spark_context(spark: SparkSession) -> Any:
    """Spark's own context in the JVM. Assumes that PySpark's context holds Java's, which holds Scala's."""
    return cast(Any, spark)._jsc.sc()


def has_stopped(spark: SparkSession) -> bool:
    """Whether Spark has stopped in the JVM, or the JVM answers no more.

    Assumes that a JVM which ends in order stops Spark first, and that a call fails once it is gone.
    """
    try:
        return bool(spark_context(spark).isStopped())
    except Exception:  # py4j raises many types for a broken connection
        return True


IMPORTED_AT_FIRST_CALL = "pyspark.testing.utils"
"""The slowest module that PySpark imports at its first call to the JVM. If it becomes another, a start takes longer."""
