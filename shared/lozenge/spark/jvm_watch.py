"""Notices a JVM that does not start, or that ends under a running process."""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psutil
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from lozenge.errors import SparkGone
from lozenge.process.waiting import wait_until
from lozenge.spark.internals import driver_jvm, errors

_SIGNAL_SECONDS = 0.5
"""Within this time a signal that has ended the JVM has reached this process too."""
START_SECONDS = 60.0
"""A JVM that has not named its port by now never will: it usually does within 1 s."""
_END_SECONDS = 2.0
"""Within this time a JVM that made a call fail because it was asked to end has begun to do so."""


@contextmanager
def start_bounded() -> Iterator[None]:
    """Kills the JVM that does not name its port in time, and raises SparkGone.

    A JVM that cannot write its port to a full disk lives on in silence, and PySpark waits for either for ever.
    """
    this, late = psutil.Process(), threading.Event()
    others = set(this.children(recursive=True))

    def give_up() -> None:
        if not driver_jvm.jvm_has_answered():
            late.set()
            for started in set(this.children(recursive=True)) - others:
                with suppress(psutil.NoSuchProcess):
                    started.kill()

    timer = threading.Timer(START_SECONDS, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    except PySparkRuntimeError as error:
        if late.is_set():
            raise SparkGone(
                f"starting Spark: its JVM has not named its port within {START_SECONDS:g} s",
                hint=f"see whether the disk of {tempfile.gettempdir()} is full or the machine overloaded",
            ) from error
        if errors.ended_at_start(error):
            raise SparkGone(
                "starting Spark: its JVM has ended before it named its port",
                hint="its own messages are above; a full disk and too little memory are usual reasons",
            ) from error
        raise
    finally:
        timer.cancel()


@contextmanager
def end_named(spark: SparkSession, doing: str, stopping: Callable[[], bool]) -> Iterator[None]:
    """Raises SparkGone when the block fails because Spark's JVM has ended, or nothing if this process is `stopping`.

    A signal to a whole process group or container reaches both, and the JVM is quicker.
    """
    try:
        yield
    except Exception as error:
        if not _ends(spark):
            raise
        time.sleep(_SIGNAL_SECONDS)
        if not stopping():
            raise _gone(doing) from error


@contextmanager
def watched(spark: SparkSession, doing: str, stopping: Callable[[], bool]) -> Iterator[None]:
    """As `end_named`; the session is stopped at the end of the block in any case."""
    try:
        with end_named(spark, doing, stopping):
            yield
    finally:
        with suppress(Exception):  # a JVM that is gone needs no stop
            spark.stop()


def require_running(spark: SparkSession, doing: str) -> None:
    """Raises SparkGone if Spark's JVM has ended, or has begun to."""
    if driver_jvm.has_stopped(spark):
        raise _gone(doing)


def _ends(spark: SparkSession) -> bool:
    """Whether the JVM is gone or ends within a moment: it stops Spark first, and answers until then."""
    return wait_until(lambda: driver_jvm.has_stopped(spark), _END_SECONDS)


def _gone(doing: str) -> SparkGone:
    return SparkGone(
        f"{doing}: Spark's JVM has ended",
        hint="if the system was short of memory, raise the memory of this job; a restart resumes at committed offsets",
    )
