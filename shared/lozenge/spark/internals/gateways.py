"""Gateways by which other processes use a running JVM, each with a session of its own."""

import atexit
import os
import secrets
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, cast

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from lozenge.process.logging import logger
from lozenge.spark.internals import driver_jvm, queries
from lozenge.spark.internals.driver_jvm import java
from lozenge.spark.internals.python_api import batch_isin_literals, remember_functions

CLIENT = "LOZENGE_HOST_CLIENT"
"""The variable that names the client of a Python worker."""
TAG = "lozenge-gateway-"
"""The tag of all Spark jobs of a client begins so."""
_POOL = "spark.scheduler.pool"
_TAGS = "spark.job.tags"
_COUNT, _COUNTING = "lozenge.gateways", threading.Lock()
"""How many gateways there are, as a property of the JVM for all clients."""
_LOGGED_APP = "mdc.app"
"""Log4j's configuration finds whose a line is by this key. Properties that begin so are in the context of a task."""


class Gateway:
    """A gateway into this JVM for one other process, with a new session.

    `app` names its pool of task slots, and what its threads and tasks log. A pool of threads that the JVM has for all
    clients may have inherited the name of one (see `lozenge.host.log_attribution`).

    Assumes that py4j's `ClientServer` may be made more than once, that a session shares no SQL settings, functions,
    views and queries with another one, and that it tags its Spark jobs, so that they can be interrupted alone. Also
    that a Java thread inherits the local properties of the thread that starts it, so that all threads which serve this
    client, and its queries, have the pool, and their jobs a tag of the client. And their context of log4j, where a JVM
    has that flag, as a host has.
    """

    def __init__(self, spark: SparkSession, app: str) -> None:
        self._host = spark
        self._session: Any = cast(Any, spark.newSession())._jsparkSession
        self.token = secrets.token_hex(32)
        jvm = java(spark)
        loopback = jvm.java.net.InetAddress.getLoopbackAddress()
        builder = jvm.py4j.ClientServer.ClientServerBuilder().authToken(self.token).javaPort(0).javaAddress(loopback)
        inherited = {_POOL: app, _LOGGED_APP: app, _TAGS: TAG + secrets.token_hex(8)}
        with _local_properties(spark, inherited), _log_context(spark, app):
            self._server: Any = builder.entryPoint(self._session).build()
            self._server.startServer()
        self.port: int = self._server.getJavaServer().getListeningPort()
        _count(spark, 1)

    def close(self) -> None:
        """Stops the session's queries, interrupts its jobs, and accepts no more connections."""
        _count(self._host, -1)
        active = list(self._session.streams().active())
        for query in active:
            with suppress(Exception):  # it has failed by itself, since it could not call its process
                query.stop()
        self._session.interruptAll()
        self._server.shutdown()
        set_default_session(self._host)  # PySpark had made this one the default
        sessions = [*map(queries.session_of, active), self._session]
        if not all([*map(queries.forget_listener, sessions)]):
            logger().warning("this Spark keeps a session whose client is gone; a host of it should serve fewer clients")
        self._session.artifactManager().close()  # a temporary folder


def connected(port: int, token: str, client: str) -> SparkSession:
    """The session of a `Gateway`, in the process that it is for. `client` names that process to its workers.

    Assumes that PySpark connects to the gateway of these two variables instead of starting a JVM, and that its context
    takes one that runs. Nothing that this process does to the session or its context stops Spark for others.
    """
    os.environ |= {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": token}
    try:
        gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
    jvm, jsession = gateway.jvm, gateway.entry_point
    jcontext = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(jsession.sparkContext())
    with _signals_kept():
        SparkContext._ensure_initialized(gateway=gateway)
        context: Any = SparkContext(gateway=gateway, jsc=jcontext, conf=SparkConf(_jvm=jvm, _jconf=jcontext.getConf()))
    _replace_temporary_folder(context)
    context.stop = lambda: None
    context.environment = _WorkerEnvironment(context.environment, client)
    session = SparkSession(context, jsparkSession=jsession)
    remember_functions(session)
    batch_isin_literals()
    return session


def _replace_temporary_folder(context: Any) -> None:
    """Takes a folder of this process for that which PySpark lets the JVM make, and keep until the JVM ends."""
    made, context._temp_dir = context._temp_dir, tempfile.mkdtemp(prefix="pyspark-")
    atexit.register(shutil.rmtree, context._temp_dir, ignore_errors=True)
    with suppress(OSError):
        os.rmdir(made)


def gateways(spark: SparkSession) -> int:
    """How many this JVM has."""
    return int(java(spark).java.lang.System.getProperty(_COUNT, "0"))


def _count(spark: SparkSession, change: int) -> None:
    with _COUNTING:
        java(spark).java.lang.System.setProperty(_COUNT, str(gateways(spark) + change))


@contextmanager
def _local_properties(spark: SparkSession, properties: Mapping[str, str]) -> Iterator[None]:
    """Within the block, the present thread has them, and each thread that it starts has them for ever."""
    context = driver_jvm.spark_context(spark)
    for name, value in properties.items():
        context.setLocalProperty(name, value)
    try:
        yield
    finally:
        for name in properties:
            context.setLocalProperty(name, None)


@contextmanager
def _log_context(spark: SparkSession, app: str) -> Iterator[None]:
    """Within the block, the present thread logs as `app`, and each thread that it starts does so for ever."""
    context = java(spark).org.apache.logging.log4j.ThreadContext
    context.put(_LOGGED_APP, app)
    try:
        yield
    finally:
        context.remove(_LOGGED_APP)


class _WorkerEnvironment(dict[str, str]):
    """What PySpark sends along with each function, for the workers that run it; read when it is sent."""

    def __init__(self, environment: Mapping[str, str], client: str) -> None:
        super().__init__({**environment, CLIENT: client, "PYTHONPATH": ""})

    def __getitem__(self, name: str) -> str:
        return os.environ.get(name, "") if name == "PYTHONPATH" else super().__getitem__(name)


@contextmanager
def _signals_kept() -> Iterator[None]:
    """PySpark's context cancels all jobs at SIGINT, also those of other processes."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        with suppress(ValueError):  # not the main thread, where PySpark sets none either
            signal.signal(signal.SIGINT, before)


def set_default_session(spark: SparkSession) -> None:
    """Makes it the session of code that names none. Assumes that the JVM keeps one for all of its threads."""
    java(spark).org.apache.spark.sql.classic.SparkSession.setDefaultSession(cast(Any, spark)._jsparkSession)


def is_default_session(spark: SparkSession) -> bool:
    """Whether it is the session of code that names none."""
    default = java(spark).org.apache.spark.sql.classic.SparkSession.getDefaultSession()
    return bool(default.contains(cast(Any, spark)._jsparkSession))


def listeners(spark: SparkSession) -> int:
    """How many the context has, those of the queries of each session among them."""
    return int(cast(Any, spark)._jsparkSession.sparkContext().listenerBus().listeners().size())
