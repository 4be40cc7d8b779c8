"""The warm host of this user's tools: started at its first use, and ended once it is idle for long.

`lozenge test`, `try` and the other tools of an author use it, so that each of them starts within a second. A host is
for exactly one configuration of the JVM. Its folder is named by that, so another version of Spark, of the jars or of
the flags has a host of its own. No live detector runs on it.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from pyspark.sql import SparkSession

from lozenge.errors import SparkGone, ToolchainError
from lozenge.host.address import LOG, connect, published, published_by
from lozenge.host.client import SharedJvm
from lozenge.host.fingerprint import fingerprint
from lozenge.host.process import HostSize, start_host
from lozenge.host.static_conf import STATIC_CONF
from lozenge.process.detached import last_error
from lozenge.process.waiting import wait_until
from lozenge.spark.conf import most_slots
from lozenge.spark.internals.driver_jvm import spark_runs_here
from lozenge.spark.session_provider import OwnJvm, SessionRequest
from lozenge.toolchain import cache_path, one_at_a_time
from lozenge.toolchain.java import java_home

SETTING = "LOZENGE_SPARK_HOST"
"""`off`: each tool starts a JVM of its own. A folder: hosts are there instead of in the user's cache."""
IDLE_SECONDS = 15 * 60.0
START_SECONDS = 90.0
TOOL_SIZE = HostSize(most_slots(12), 2048, result_mb=512)
"""Task slots for a query in Real-Time Mode on an input of twelve partitions, and a heap for several tools at once."""
_CONNECT_SECONDS = 2.0
_STARTED: list["subprocess.Popen[bytes]"] = []
"""Python warns of a process that nobody refers to and that still runs, as these do on purpose."""
_JAVA_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")


def tool_session(app: str, conf: Mapping[str, str] | None = None) -> SparkSession:
    """A new session for a tool of an author, which ends with this process. `conf` wins over every default.

    A process that has Spark already gets a session there; its other sessions keep their settings.

    Raises SparkGone if the host does not start or has ended, ToolchainError.
    """
    request = SessionRequest(app, TOOL_SIZE.cores, TOOL_SIZE.memory_mb, result_mb=TOOL_SIZE.result_mb, conf=STATIC_CONF)
    if spark_runs_here():
        session = SparkSession.builder.getOrCreate().newSession()
    elif os.environ.get(SETTING) == "off":
        session = OwnJvm().start(request).newSession()
    else:
        session = SharedJvm(warm_host()).start(request)
    for name, value in (conf or {}).items():
        session.conf.set(name, value)
    return session


def warm_host() -> Path:
    """The folder of the host for this configuration: of one that runs, or starts now, which takes some seconds."""
    folder = _folder()
    if _runs(folder):
        return folder
    try:
        with one_at_a_time(str(folder)):
            if not _runs(folder):
                _start(folder)
    except OSError as error:
        raise ToolchainError(
            f"starting a Spark host in {folder}: {error.strerror}", hint=f"{SETTING} names another folder; off: none"
        ) from error
    return folder


def _folder() -> Path:
    """Of the host for exactly this Java, these jars, flags and settings, and this PySpark, wherever it is installed."""
    options = {name: os.environ.get(name, "") for name in _JAVA_OPTIONS}
    known = [fingerprint(), str(java_home()), options, STATIC_CONF, asdict(TOOL_SIZE)]
    name = hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:12]
    set_to = os.environ.get(SETTING)
    return (Path(set_to) if set_to else cache_path("hosts")) / name


def _runs(folder: Path) -> bool:
    if (address := published(folder)) is None:
        return False
    try:
        connect(address, _CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def _start(folder: Path) -> None:
    (folder / LOG).unlink(missing_ok=True)  # of the last one
    host = start_host(folder, sys.executable, os.environ, TOOL_SIZE, IDLE_SECONDS)

    wait_until(lambda: published_by(folder, host.pid) or host.poll() is not None, START_SECONDS)
    if host.poll() is None and published_by(folder, host.pid):
        _STARTED.append(host)
        return
    if host.poll() is None:
        host.kill()
    said = last_error(folder / LOG).message
    raise SparkGone(
        f"starting a Spark host: it is not ready (exit code {host.poll()}); its log says last: {said or 'nothing'}",
        hint=f"its log is {folder / LOG}; {SETTING}=off does without",
    )
