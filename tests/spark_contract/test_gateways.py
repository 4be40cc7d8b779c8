"""What a gateway for another process assumes of py4j and of sessions; the process is here."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from lozenge.spark.internals.gateways import Gateway, is_default_session, listeners

PROGRAM = """
import signal, sys, threading
from lozenge.spark.internals.gateways import connected
before = signal.getsignal(signal.SIGINT)
spark = connected(int(sys.argv[1]), sys.argv[2], "client")
assert signal.getsignal(signal.SIGINT) is before
print(spark.sparkContext.applicationId, spark.range(7).count(), spark.conf.get("spark.sql.session.timeZone"))
assert not spark.streams.active
spark.stop()
print(spark.range(3).count())
pools = []
thread = threading.Thread(target=lambda: pools.append(spark.sparkContext.getLocalProperty("spark.scheduler.pool")))
thread.start()
thread.join()
print(spark.sparkContext.getLocalProperty("spark.scheduler.pool"), *pools)
named = "reflect('org.apache.logging.log4j.ThreadContext', 'get', 'mdc.app')"
[(app, task)] = spark.range(1).selectExpr(named, "reflect('java.lang.Thread', 'currentThread')").collect()
print(app, task.partition("[")[2].split("(TID")[0])
print(spark._jvm.java.lang.Thread.currentThread().getName())
"""

WITH_STATE = """
import sys, time
from lozenge.spark.internals.gateways import connected
spark = connected(int(sys.argv[1]), sys.argv[2], "client")
rows = spark.readStream.format("rate").load().groupBy("value").count()
query = rows.writeStream.format("noop").outputMode("update").option("checkpointLocation", sys.argv[3]).start()
query.processAllAvailable()
print("processed", flush=True)
time.sleep(600)
"""
"""It never ends by itself."""


@pytest.fixture
def gateway(spark: SparkSession) -> Iterator[Gateway]:
    opened = Gateway(spark, "app")
    yield opened
    opened.close()


def entered(gateway: Gateway, token: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, str(gateway.port), token or gateway.token]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_another_process_works_in_this_jvm_and_cannot_stop_it(spark: SparkSession, gateway: Gateway) -> None:
    run = entered(gateway)
    counts, again, pools, task, thread = run.stdout.splitlines() or [run.stderr] * 5
    assert (counts, again, pools) == (f"{spark.sparkContext.applicationId} 7 UTC", "3", "app app")
    assert task.startswith("app Executor task launch worker for task ")
    assert thread.startswith("Thread-")
    assert spark.range(1).count() == 1


def test_a_task_after_those_of_a_client_logs_as_nobody(spark: SparkSession, gateway: Gateway) -> None:
    assert entered(gateway).returncode == 0
    of_the_last = "reflect('org.apache.logging.log4j.ThreadContext', 'get', 'mdc.app')"
    found = spark.range(0, 64, 1, 64).selectExpr(of_the_last).collect()
    assert {app for (app,) in found} == {"null"}


def test_nobody_enters_with_another_token_or_after_the_end(spark: SparkSession) -> None:
    gateway = Gateway(spark, "app")
    assert "Authentication" in entered(gateway, "another").stderr
    gateway.close()
    assert entered(gateway).returncode != 0


def test_nothing_of_a_client_stays_in_the_context(spark: SparkSession) -> None:
    first = Gateway(spark, "app")
    assert entered(first).returncode == 0  # the first of all adds what stays for ever
    first.close()
    before = listeners(spark)
    gateway = Gateway(spark, "app")
    assert entered(gateway).returncode == 0
    assert not is_default_session(spark)
    assert listeners(spark) == before + 1
    gateway.close()
    assert is_default_session(spark)
    assert listeners(spark) == before


def test_nothing_of_a_killed_client_with_state_stays(spark: SparkSession, tmp_path: Path) -> None:
    def killed(number: int) -> None:
        gateway = Gateway(spark, "app")
        command = [sys.executable, "-c", WITH_STATE, str(gateway.port), gateway.token, str(tmp_path / str(number))]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | {"TMPDIR": str(tmp_path)}) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == b"processed\n"
            client.kill()
        gateway.close()

    killed(1)  # the first of all adds what stays for ever
    before, folders = listeners(spark), temporary_folders(spark)
    killed(2)
    assert listeners(spark) == before
    assert temporary_folders(spark) == folders


def temporary_folders(spark: SparkSession) -> int:
    """Those that PySpark has let this JVM make."""
    own = Path(cast(Any, spark.sparkContext)._temp_dir)
    return len(list(own.parent.glob("pyspark-*")))
