"""Where a job gets its Spark session from, and who ends what.

A job asks a provider for a session and holds it while it runs. It assumes nothing about the JVM: it sets no static
configuration, adds no listener, and stops its own queries only. Names that must be unique in a JVM, of queries, Kafka
clients and temporary folders, begin with the name of the job or are random. So a provider may give several jobs
sessions of one JVM.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import SparkSession

from lozenge.process.usage import CostMeter, Meter
from lozenge.spark.jvm_watch import watched
from lozenge.spark.session import spark_session


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """The session that a process needs; see `spark_session`.

    `result_mb` is the largest result of a batch. A JVM that is shared has a limit of its own, the same for all.
    """

    app: str
    cores: int
    memory_mb: int
    new_mb: int | None = None
    master: str | None = None
    result_mb: int | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


def result_limit(megabytes: int) -> dict[str, str]:
    """The static configuration by which a JVM takes no larger result of a Spark job, of whichever session."""
    return {"spark.driver.maxResultSize": f"{megabytes}m"}


class SessionProvider(Protocol):
    """Gives sessions, and owns the JVM behind them."""

    def start(self, request: SessionRequest) -> SparkSession:
        """A session as requested; raises ToolchainError, SparkGone."""
        ...

    def held(self, spark: SparkSession, doing: str, stopping: Callable[[], bool]) -> AbstractContextManager[None]:
        """A block in which the session is used, and after which it is given back.

        Raises SparkGone if the block fails because the JVM has ended, and nothing if the process is `stopping`.
        """
        ...

    def meter(self, spark: SparkSession) -> CostMeter:
        """Measures what this process costs, with its part of the JVM."""
        ...


class OwnJvm:
    """Starts a JVM of the process's own, and ends it with the session."""

    def start(self, request: SessionRequest) -> SparkSession:
        """Takes some seconds; raises ToolchainError, SparkGone."""
        limit = {} if request.result_mb is None else result_limit(request.result_mb)
        return spark_session(
            request.app,
            cores=request.cores,
            memory_mb=request.memory_mb,
            new_mb=request.new_mb,
            master=request.master,
            conf=limit | dict(request.conf),
        )

    def held(self, spark: SparkSession, doing: str, stopping: Callable[[], bool]) -> AbstractContextManager[None]:
        """The session is stopped after the block, and its JVM ends with the process."""
        return watched(spark, doing, stopping)

    def meter(self, spark: SparkSession) -> CostMeter:
        """The JVM is a child of this process."""
        return Meter()
