"""The one way a process of Lozenge gets its Spark session."""

import importlib
import os
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress

from pyspark.sql import SparkSession

from lozenge.spark.conf import session_conf
from lozenge.spark.internals import driver_jvm
from lozenge.spark.internals.local_files import let_snapshots_be_copied
from lozenge.spark.internals.python_api import batch_isin_literals, remember_functions
from lozenge.spark.jvm_watch import start_bounded
from lozenge.toolchain.jars import jars
from lozenge.toolchain.java import java_home


def spark_session(
    app: str,
    *,
    cores: int = 2,
    memory_mb: int = 512,
    new_mb: int | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """Starts this process's Spark, with the Kafka and Avro modules, and returns its session.

    `cores` are task slots, that is threads: more than the machine has is allowed. `memory_mb` is the JVM's heap (at
    least 450, or Spark refuses); with its own overhead the process takes some 250 MB more. `new_mb` of it are the new
    generation, and the heap stays small; None leaves both to Java. With `master` set to a cluster, the session
    takes `cores` of it at most, with executors of `memory_mb`, to which the jars are shipped; otherwise everything
    binds to loopback. `conf` wins over every default.

    A process has one session: a second call returns the same one and can only change its SQL
    settings. Its JVM ends with this process, however this process ends. Raises ToolchainError if
    Java or the jars are not as they should be; the first call on a new machine fetches the jars.

    From now on the process is in UTC, with Spark's Python workers: a time that a Python function gets, or that a
    literal is made of, has no zone, and would otherwise mean another moment on each machine.
    """
    use_utc()
    os.environ["JAVA_HOME"] = str(java_home())
    # spark-submit starts a JVM only to compose the command line of the next; let it be brief
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master is None:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = session_conf(
        cores=cores,
        memory_mb=memory_mb,
        new_mb=new_mb,
        master=master,
        jars=jars("connector"),
        overrides=conf or {},
    )
    builder = SparkSession.builder.appName(app).master(master or f"local[{cores}]").config(map=settings)
    threading.Thread(target=_import_ahead, daemon=True).start()
    with start_bounded():
        session = builder.getOrCreate()
    if master is None:
        let_snapshots_be_copied(session)
    remember_functions(session)
    batch_isin_literals()
    return session


def use_utc() -> None:
    """Puts this process into UTC, and the processes that it starts from now on."""
    os.environ["TZ"] = "UTC"
    time.tzset()


def _import_ahead() -> None:
    """Imports while the JVM starts what PySpark's first call to it will import, pandas among it: half a second each."""
    with suppress(ImportError):  # that call reports it
        importlib.import_module(driver_jvm.IMPORTED_AT_FIRST_CALL)
