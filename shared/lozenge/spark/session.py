"""The one way a process of Lozenge gets its Spark session."""

import importlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from lozenge.errors import SparkGone
from lozenge.toolchain import cache_path, cds
from lozenge.toolchain.jars import jars
from lozenge.toolchain.java import java_home

_SIGNAL_SECONDS = 0.5
"""Within this time a signal that has ended the JVM has reached this process too."""
_START_SECONDS = 60.0
"""A JVM that has not told its port by now never will: it usually does within 1 s."""
_ENDS_SECONDS = 2.0
"""Within this time a JVM that made a call fail because it was told to end has begun to do so."""

_LOGGING = Path(__file__).parents[1] / "toolchain" / "log4j2.properties"

# The serial collector suits a heap of half a gigabyte: less memory, fewer threads. The optimising
# compiler C2 costs more processor time at a start than all else, but a busy job needs it (decoding
# Avro takes 1.4 s per million with C1 alone, 0.9 s with C2). So its thresholds are 40 times the usual
# ones: what is hot is compiled a few seconds later, and a job with little to do never pays for it.
_JVM = (
    "-XX:+UseSerialGC",
    # query.stop() in the middle of a batch makes Spark match a long message with a recursive regular
    # expression; on the usual stack of 1 MB that ends in a StackOverflowError of a thousand lines
    "-Xss16m",
    # how far a query has read while its batch lasts, Kafka's client tells by JMX alone (see `spark_positions`)
    "--add-exports=java.management/com.sun.jmx.mbeanserver=ALL-UNNAMED",
    "-XX:Tier4InvocationThreshold=200000",
    "-XX:Tier4MinInvocationThreshold=24000",
    "-XX:Tier4CompileThreshold=600000",
    "-XX:Tier4BackEdgeThreshold=1600000",
)

SHUFFLE_PARTITIONS = 2


def most_slots(partitions: int) -> int:
    """All tasks of a query that a detector has at once, in Real-Time Mode, on an input of so many partitions."""
    return partitions + SHUFFLE_PARTITIONS


_DEFAULTS = {
    # A job is small and its partition count is frozen by its first batch; Spark's 200 would ruin it.
    "spark.sql.shuffle.partitions": str(SHUFFLE_PARTITIONS),
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # State that Real-Time Mode accepts too, in bounded native memory. (Avro encoding is only for
    # transformWithState: Spark refuses it for aggregates.)
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    # Real-Time Mode's shuffle otherwise keeps each row for 50 ms, in case another one comes
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "1",
    # what a declared trigger may be is for the declaration to say; the first batches of a process are shorter
    "spark.sql.streaming.realTimeMode.minBatchDuration": "1000",
    # all stores of the process together; Spark's 500 is as much as a job's heap, and is filled over a long backlog
    "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "100",
    # For what it does with files, Hadoop's Java starts processes, of 4 to 10 ms each: one to set the mode of a new
    # file, and by its newer interface two more to rename it. So the older one, without checksum files beside its own.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # query.stop() otherwise waits for ever (milliseconds)
    "spark.sql.streaming.stopTimeout": "30000",
    # a look at what has ended brings all of them over
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.python.worker.faulthandler.enabled": "true",
    # else each call that makes an expression also looks for its line of code, and takes three times as long
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # No metastore and no tables: nothing of the sort may appear in the working directory.
    "spark.sql.catalogImplementation": "in-memory",
}


def spark_session(
    app: str,
    *,
    cores: int = 2,
    memory_mb: int = 512,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """Starts this process's Spark, with the Kafka and Avro modules, and returns its session.

    `cores` are task slots, that is threads: more than the machine has is allowed. `memory_mb` is the
    JVM's heap (at least 450, or Spark refuses); with its own overhead the process takes some 250 MB
    more. With `master` set to a cluster, the session takes `cores` of it at most, with executors of
    `memory_mb`, to which the jars are shipped; otherwise everything binds to loopback. `conf` wins over
    every default.

    A process has one session: a second call returns the same one and can only change its SQL
    settings. Its JVM ends with this process, however this process ends. Raises ToolchainError if
    Java or the jars are not as they should be; the first call on a new machine fetches the jars.
    """
    os.environ["JAVA_HOME"] = str(java_home())
    # spark-submit starts a JVM only to compose the command line of the next; let it be brief
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    connector = [str(jar) for jar in jars("connector")]
    if master is None:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        place = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    else:
        place = {
            "spark.jars": ",".join(connector),
            "spark.cores.max": str(cores),
            "spark.executor.memory": f"{memory_mb}m",
        }
    settings: dict[str, bool | float | int | str | None] = {
        **_DEFAULTS,
        **place,
        "spark.local.dir": tempfile.gettempdir(),
        "spark.sql.warehouse.dir": str(cache_path("spark-warehouse")),
        "spark.driver.memory": f"{memory_mb}m",
        "spark.driver.extraClassPath": os.pathsep.join(connector),
        **(conf or {}),
    }
    settings["spark.driver.extraJavaOptions"] = " ".join(
        [*_jvm_options(), str(settings.get("spark.driver.extraJavaOptions", ""))]
    ).strip()
    builder = SparkSession.builder.appName(app).master(master or f"local[{cores}]").config(map=settings)
    threading.Thread(target=_import_ahead, daemon=True).start()
    with _start_bounded():
        return builder.getOrCreate()


def _import_ahead() -> None:
    """What PySpark imports at its first call to the JVM, and pandas with it, takes half a second; so does the JVM."""
    with suppress(ImportError):  # told by that call
        importlib.import_module("pyspark.testing.utils")


@contextmanager
def _start_bounded() -> Iterator[None]:
    """Ends the JVM that does not tell its port in time, and raises SparkGone.

    One that cannot write its port to a full disk lives on in silence, and PySpark waits for either for ever.
    """
    this, late = psutil.Process(), threading.Event()
    others = set(this.children(recursive=True))

    def give_up() -> None:
        if SparkContext._gateway is None:
            late.set()
            for started in set(this.children(recursive=True)) - others:
                with suppress(psutil.NoSuchProcess):
                    started.kill()

    timer = threading.Timer(_START_SECONDS, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    except PySparkRuntimeError as error:
        if late.is_set():
            raise SparkGone(
                f"starting Spark: its JVM has not told its port within {_START_SECONDS:g} s",
                hint=f"see whether the disk of {tempfile.gettempdir()} is full or the machine overloaded",
            ) from error
        if error.getCondition() == "JAVA_GATEWAY_EXITED":
            raise SparkGone(
                "starting Spark: its JVM has ended before it told its port",
                hint="its own words stand above; a full disk and too little memory are usual reasons",
            ) from error
        raise
    finally:
        timer.cancel()


@contextmanager
def outliving(spark: SparkSession, doing: str, stopping: Callable[[], bool]) -> Iterator[None]:
    """Tells the death of Spark's JVM for what it is: SparkGone, or nothing if this process is to stop anyway.

    Whoever ends a whole process group or container sends one signal to both, and the JVM is quicker. At
    the end of the block the session is stopped, whatever has happened.
    """
    try:
        yield
    except Exception as error:
        if not _ends(spark):
            raise
        time.sleep(_SIGNAL_SECONDS)
        if not stopping():
            raise _gone(doing) from error
    finally:
        with suppress(Exception):  # a JVM that is gone needs no stop
            spark.stop()


def require_running(spark: SparkSession, doing: str) -> None:
    """Raises SparkGone if Spark's JVM has ended, or has begun to."""
    if _ended(spark):
        raise _gone(doing)


def _ends(spark: SparkSession) -> bool:
    """Whether the JVM is gone, or goes within a moment: at its end it stops Spark first, and answers until then."""
    deadline = time.monotonic() + _ENDS_SECONDS
    while not (ended := _ended(spark)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return ended


def _ended(spark: SparkSession) -> bool:
    jvm: Any = spark._jsc
    try:
        return bool(jvm.sc().isStopped())
    except Exception:  # py4j raises many types for a broken connection
        return True


def _gone(doing: str) -> SparkGone:
    return SparkGone(
        f"{doing}: Spark's JVM has ended",
        hint="if the system was short of memory, raise the memory of this job; a restart goes on where it was",
    )


def _jvm_options() -> list[str]:
    """Java follows TMPDIR only where it is told to."""
    temporary = tempfile.gettempdir()
    places = f'"-Djava.io.tmpdir={temporary}"', f'"-XX:ErrorFile={temporary}/lozenge-jvm-crash-%p.log"'
    return [*_JVM, f'"-Dlog4j2.configurationFile={_LOGGING}"', *places, *cds.options()]
