"""What every Spark session of Lozenge is configured with, and why: the JVM's flags and Spark's settings."""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from lozenge import toolchain
from lozenge.toolchain import cache_path
from lozenge.toolchain.cds import spark_archive

_LOGGING = Path(toolchain.__file__).with_name("log4j2.properties")

# The serial collector suits a heap of half a gigabyte: less memory, fewer threads. The optimising
# compiler C2 costs more processor time at a start than all else, but a busy job needs it (decoding
# Avro takes 1.4 s per million with C1 alone, 0.9 s with C2). So its thresholds are 40 times the usual
# ones: what is hot is compiled a few seconds later, and a job with little to do never pays for it.
_JVM = (
    "-XX:+UseSerialGC",
    # query.stop() in the middle of a batch makes Spark match a long message with a recursive regular
    # expression; on the usual stack of 1 MB that ends in a StackOverflowError of a thousand lines
    "-Xss16m",
    # Kafka's client shows by JMX alone how far a query has read while its batch lasts (see `live_lag`)
    "--add-exports=java.management/com.sun.jmx.mbeanserver=ALL-UNNAMED",
    "-XX:Tier4InvocationThreshold=200000",
    "-XX:Tier4MinInvocationThreshold=24000",
    "-XX:Tier4CompileThreshold=600000",
    "-XX:Tier4BackEdgeThreshold=1600000",
    # Java moves the class-data archive to a random address, and so writes to most of its pages. Where it was made
    # for, 131 of its 190 MB stay as they are in the file, and all JVMs of a machine share them (ADR 0114).
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:ArchiveRelocationMode=0",
)

_LARGEST_VALUE = 16 * 1024 * 1024
_AVRO = (
    # Avro's reader believes a length before it reads: four bad bytes would claim a gigabyte, and end the JVM. The limit
    # is twice the largest record of any topic of the platform.
    *(
        f"-Dorg.apache.avro.limits.{what}={_LARGEST_VALUE}"
        for what in ("string.maxLength", "bytes.maxLength", "collectionItems.maxLength")
    ),
    # Spark parses a schema again in each task, and Avro's fast reader keeps each schema for ever (ADR 0159).
    "-Dorg.apache.avro.fastread=false",
)

JOB_NEW_MB = 32
"""The new generation of a job, whatever its kind.

Java's own is a third of a heap that begins with a 64th of the machine's memory: 128 MB on a machine of 24 GB, all of
which a job writes to before it collects any. A collection's pause depends on what survives, which is little (ADR 0114).
"""

SHUFFLE_PARTITIONS = 2


def most_slots(partitions: int) -> int:
    """All tasks of a query that a detector has at once, in Real-Time Mode, on an input of so many partitions."""
    return partitions + SHUFFLE_PARTITIONS


_SETTINGS = {
    # A job is small, and its first batch fixes its partition count; Spark's 200 would ruin it.
    "spark.sql.shuffle.partitions": str(SHUFFLE_PARTITIONS),
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # Whole-stage code fuses the decoding of an event with what follows, into methods of 12 kB and more. Java interprets
    # any method above 8 kB, and Spark makes the code of the stage again in each batch (ADR 0177).
    "spark.sql.codegen.wholeStage": "false",
    # State that Real-Time Mode accepts too, in bounded native memory. (Avro encoding is only for
    # transformWithState: Spark refuses it for aggregates.)
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    # Real-Time Mode's shuffle otherwise buffers each row for 50 ms, in case another one comes
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "1",
    # the detector's manifest bounds the declared trigger; the first batches of a process are shorter
    "spark.sql.streaming.realTimeMode.minBatchDuration": "1000",
    # all stores of the process together; Spark's 500 is as much as a job's heap, and a long backlog fills it
    "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "100",
    # For what it does with files, Hadoop's Java starts processes, of 4 to 10 ms each: one to set the mode of a new
    # file, and by its newer interface two more to rename it. So the older one, without checksum files: 9 ms a batch
    # instead of 34 (with `_LOCAL_FILES`).
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # pools of eight, eight and four threads that are started at once, for shuffles and results of one small process
    "spark.shuffle.mapOutput.dispatcher.numThreads": "2",
    "spark.resultGetter.threads": "1",
    # query.stop() otherwise waits for ever (milliseconds)
    "spark.sql.streaming.stopTimeout": "30000",
    # each look at the triggers that have ended brings all of them over
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    # Spark would take 8 MB in a heap of 2 GB, and a broadcast keeps one page at least, however small it is
    "spark.buffer.pageSize": "1m",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.python.worker.faulthandler.enabled": "true",
    # Else each call that makes an expression also looks up its line of code: 0.5 s per 300 columns that are added.
    # The test kit looks it up for expressions of `detect()`, so that their errors name it.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # No metastore and no tables: neither may appear in the working directory.
    "spark.sql.catalogImplementation": "in-memory",
}

_LOCAL_FILES = {"spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem"}
"""Without checksum files; see the class of the checkpoint files. Executors of a cluster could then copy no snapshot."""

Conf = dict[str, bool | float | int | str | None]


def digest() -> str:
    """Differs between two versions of this module whose sessions would differ, wherever they are installed."""
    known = json.dumps([_SETTINGS, _LOCAL_FILES, _JVM, _AVRO, _LOGGING.read_text("utf-8")], sort_keys=True)
    return hashlib.sha256(known.encode()).hexdigest()


def session_conf(
    *,
    cores: int,
    memory_mb: int,
    new_mb: int | None,
    master: str | None,
    jars: list[Path],
    overrides: Mapping[str, str],
) -> Conf:
    """Every setting of a session with the connector's `jars`; `overrides` win, but for the JVM's flags, which add."""
    paths = [str(jar) for jar in jars]
    if master is None:
        where = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", **_LOCAL_FILES}
    else:
        where = {
            "spark.jars": ",".join(paths),
            "spark.cores.max": str(cores),
            "spark.executor.memory": f"{memory_mb}m",
            "spark.executor.extraJavaOptions": " ".join(_AVRO),
        }
    conf: Conf = {
        **_SETTINGS,
        **where,
        "spark.local.dir": tempfile.gettempdir(),
        "spark.sql.warehouse.dir": str(cache_path("spark-warehouse")),
        "spark.driver.memory": f"{memory_mb}m",
        "spark.driver.extraClassPath": os.pathsep.join(paths),
        **overrides,
    }
    flags = [*_jvm_flags(new_mb), str(conf.get("spark.driver.extraJavaOptions", ""))]
    return conf | {"spark.driver.extraJavaOptions": " ".join(flags).strip()}


def _jvm_flags(new_mb: int | None) -> list[str]:
    """With the folder for temporary files: Java follows TMPDIR only if a flag says so."""
    temporary = tempfile.gettempdir()
    folders = f'"-Djava.io.tmpdir={temporary}"', f'"-XX:ErrorFile={temporary}/lozenge-jvm-crash-%p.log"'
    return [
        *_JVM,
        *_AVRO,
        *_small_heap(new_mb),
        f'"-Dlog4j2.configurationFile={_LOGGING}"',
        *folders,
        *spark_archive().options(),
    ]


def _small_heap(new_mb: int | None) -> list[str]:
    """A new generation of fixed size, and an old one that stays close to what is in use."""
    if new_mb is None:
        return []
    return [f"-Xmn{new_mb}m", "-XX:MinHeapFreeRatio=10", "-XX:MaxHeapFreeRatio=20"]
