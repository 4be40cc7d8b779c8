"""`python -m lozenge.host FOLDER`: a warm JVM that other processes of this user share.

FOLDER/host.json says where it listens. It ends at SIGTERM, with its JVM (exit code 1), or once it has had no client and
no owner for long.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import psutil

from lozenge.errors import LozengeError
from lozenge.host.address import FILE, publish, published, seconds_unattended
from lozenge.host.fingerprint import fingerprint
from lozenge.host.log_attribution import APP
from lozenge.host.server import HostServer
from lozenge.host.static_conf import STATIC_CONF
from lozenge.host.tool_host import TOOL_SIZE
from lozenge.process import logging
from lozenge.process.shutdown import StopSignal, end
from lozenge.spark.internals import driver_jvm
from lozenge.spark.internals.gateways import Gateway
from lozenge.spark.session import spark_session
from lozenge.spark.session_provider import result_limit
from lozenge.spark.training import train

_CAPACITY = 50
_POLL_SECONDS = 0.25
_TRAIN_AFTER_SECONDS = 1.0


def main() -> int:
    """Serves until it is to end; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lozenge.host", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--idle", type=float, default=float("inf"), help="seconds without a client and an owner after which it ends"
    )
    parser.add_argument("--cores", type=int, default=TOOL_SIZE.cores, help="task slots")
    parser.add_argument("--memory-mb", type=int, default=TOOL_SIZE.memory_mb, help="the heap")
    parser.add_argument("--result-mb", type=int, default=TOOL_SIZE.result_mb, help="the largest result of a batch")
    parser.add_argument("--new-mb", type=int, help="the new generation of it; left to Java unless given")
    parser.add_argument("--forks", action="store_true", help="start a fork server for jobs in FOLDER")
    given = parser.parse_args()
    logging.configure(APP)
    stop = StopSignal()
    if given.forks and sys.platform == "linux":  # it ends with this process, by its own look
        command = [sys.executable, "-m", "lozenge.job.fork_server", str(given.folder), str(os.getpid())]
        subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        spark = spark_session(
            "lozenge-host",
            cores=given.cores,
            memory_mb=given.memory_mb,
            new_mb=given.new_mb,
            conf=STATIC_CONF | result_limit(given.result_mb),
        )
        jvm = psutil.Process(driver_jvm.jvm_pid(spark))
        server = HostServer(lambda app: Gateway(spark, app), _CAPACITY, jvm, fingerprint())
        address = server.address
        publish(given.folder, address)
    except LozengeError as error:
        logging.logger().error(error.message, hint=error.hint)
        return error.exit_code
    except OSError as error:
        logging.logger().error(f"publishing where the host listens, in {given.folder}: {error}")
        return 1
    threading.Thread(target=server.serve, daemon=True).start()
    trained = False
    try:
        while not stop.wait(_POLL_SECONDS):
            if driver_jvm.has_stopped(spark):
                logging.logger().critical("the JVM has ended, and all clients with it")
                return 1
            if min(server.idle_seconds(), seconds_unattended(given.folder)) > given.idle:
                logging.logger().info(f"no client for {given.idle:g} s")
                return 0
            if not trained and server.idle_seconds() >= _TRAIN_AFTER_SECONDS:  # a first client must not wait for it
                trained = True
                with suppress(Exception), tempfile.TemporaryDirectory(prefix="lozenge-host-") as folder:
                    train(spark, Path(folder))  # nothing depends on it
                    logging.logger().info("warm-up query ended")
    finally:
        server.close()
        if published(given.folder) == address:
            (given.folder / FILE).unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    end(main())
