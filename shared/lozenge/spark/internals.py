"""The only module that knows more about Spark than its public Python API promises.

Only here are the JVM's objects behind PySpark reached, connector classes named, and texts of Spark's errors and plans
read. Each function states what it assumes, and `tests/spark_contract` has one test for each assumption: an upgrade of
Spark starts there. Everything here needs Spark Classic; Spark Connect has no JVM to reach.
"""

import importlib
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import DataType, StructType

from lozenge import ddl

# The JVM


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


def jvm_has_answered() -> bool:
    """Whether the JVM of this process has named its port. Assumes that PySpark keeps the gateway from then on."""
    return SparkContext._gateway is not None


def jvm_process(spark: SparkSession) -> "subprocess.Popen[bytes]":
    """The process that runs the JVM, which ends when its standard input is closed.

    Assumes that PySpark starts it as a child and keeps it at the gateway.
    """
    return cast("subprocess.Popen[bytes]", cast(Any, spark.sparkContext)._gateway.proc)


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


# Errors, known by their text

_OTHER_STATE = re.compile(r"STREAMING_STATEFUL_OPERATOR_NOT_MATCH|STATE_STORE_\w*SCHEMA")


def is_result_too_large(error: Exception) -> bool:
    """Whether a batch gave more than the driver takes. Assumes that the error names the setting that bounds it."""
    return "spark.driver.maxResultSize" in str(error)


def is_other_state(error: Exception) -> bool:
    """Whether a checkpoint's state belongs to another plan. Assumes the names of Spark's error conditions for that."""
    return _OTHER_STATE.search(str(error)) is not None


def ended_at_start(error: PySparkException) -> bool:
    """Whether a JVM ended before it named its port. Assumes the name of PySpark's error condition for that."""
    return error.getCondition() == "JAVA_GATEWAY_EXITED"


# A running query


def newest_progress(query: StreamingQuery) -> str:
    """When the newest trigger that has ended began, as Spark writes it; "" before the first.

    The whole progress takes milliseconds to bring over, and this is asked several times a second. Assumes that the
    Java query offers the progress under its public Scala names.
    """
    newest = query._jsq.lastProgress()
    return str(newest.timestamp()) if newest is not None else ""


def is_waiting(query: StreamingQuery) -> bool:
    """Whether a query is at a batch boundary. Assumes the text of its status."""
    return str(query.status["message"]).startswith("Waiting")


def in_trigger(query: StreamingQuery) -> bool:
    """Whether a trigger is under way. Assumes that micro-batches set this flag; in Real-Time Mode it means nothing."""
    return bool(query.status["isTriggerActive"])


# Real-Time Mode

_RELATION = "org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2Relation"
_DURATION = "realTimeModeDuration"
_ALLOWLIST = "spark.sql.streaming.realTimeMode.allowlistCheck"


def can_change_batch_duration(spark: SparkSession) -> bool:
    """Whether `change_batch_duration` finds what it changes: a private field of the relation that a query reads."""
    try:
        fields = java(spark).java.lang.Class.forName(_RELATION).getDeclaredFields()
    except Exception:  # py4j's, for whatever Java raised: there is no such class
        return False
    return any(field.getName() == _DURATION for field in fields)


def change_batch_duration(spark: SparkSession, query: StreamingQuery, interval: str) -> bool:
    """Sets how long batches of a running query last, from the next but one on; False if Spark keeps that elsewhere.

    To be called once a batch has run: before that Spark refuses to show its plan.

    Spark sets the duration when a query starts and offers no way to change it. Assumes that it is in a private
    field of each source's relation, and that Spark reads it there to plan each batch.
    """
    trigger = java(spark).org.apache.spark.sql.execution.streaming.RealTimeTrigger
    duration = trigger.unapply(trigger.apply(interval))  # an option of Scala's long, which py4j cannot make
    relations = source_relations(query)
    fields = [(relation, field) for relation in relations if (field := _field(relation, _DURATION)) is not None]
    for relation, field in fields:
        field.setAccessible(True)
        field.set(relation, duration)
    return bool(fields) and len(fields) == len(relations)


def source_relations(query: StreamingQuery) -> list[Any]:
    """Of each source its relation, once a batch has run. Assumes that Spark shows the plan of the running query."""
    leaves = query._jsq.streamingQuery().logicalPlan().collectLeaves()
    return [leaf.relation() for leaf in _items(leaves) if leaf.isStreaming()]


@contextmanager
def any_sink_in_real_time(spark: SparkSession) -> Iterator[None]:
    """Within the block a query in Real-Time Mode may write to any sink.

    Spark's list of what that mode can write to lacks the sink that discards rows, which can. Assumes the switch of
    that list.
    """
    spark.conf.set(_ALLOWLIST, "false")
    try:
        yield
    finally:
        spark.conf.unset(_ALLOWLIST)


# Plans


@dataclass(frozen=True)
class LogicalNode:
    """An operator of a stream's logical plan, with those of its inputs that are streams too."""

    name: str
    inputs: tuple["LogicalNode", ...]

    def walk(self) -> Iterator["LogicalNode"]:
        """Itself and all below it."""
        yield self
        for node in self.inputs:
            yield from node.walk()


def logical_plan(stream: DataFrame) -> LogicalNode:
    """The analysed plan of a stream. Assumes that Spark gives its tree, and the names of its operators."""
    return _logical_node(cast(Any, stream)._jdf.queryExecution().analyzed())


def _logical_node(node: Any) -> LogicalNode:
    return LogicalNode(
        str(node.nodeName()), tuple(_logical_node(child) for child in _items(node.children()) if child.isStreaming())
    )


def check_streamable(stream: DataFrame) -> None:
    """Raises Spark's AnalysisException if a stream that appends rows could not be started.

    Assumes the object by which Spark checks a plan when a query starts.
    """
    jvm = java(stream.sparkSession)
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    append = jvm.org.apache.spark.sql.streaming.OutputMode.Append()
    checker.checkForStreaming(cast(Any, stream)._jdf.queryExecution().analyzed(), append)


_SOURCE = "StreamingRelation"
_LINE = re.compile(r"(?P<indent>[\s:|]*(?:[+:]- )?)(?:\* )?(?P<operator>\w+)")


def physical_operators(stream: DataFrame) -> set[str]:
    """Names of the operators that rows pass between a stream's sources, these included, and its end.

    Spark gives the physical plan of a stream that has not been started as text alone. Assumes the form of that text:
    the tree comes first, indented by depth, and a source is called StreamingRelation.
    """
    jvm = java(stream.sparkSession)
    formatted = jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted")
    return set(operators_above_sources(cast(Any, stream)._jdf.queryExecution().explainString(formatted)))


def operators_above_sources(explained: str) -> Iterator[str]:
    """Of a formatted plan's text, the operators on the paths from its streaming sources to its root."""
    tree = explained.split("== Physical Plan ==")[-1].strip("\n").split("\n\n")[0]
    path: list[tuple[int, str]] = []
    for found in map(_LINE.match, tree.splitlines()):
        assert found is not None, f"not a plan: {tree}"
        depth = len(found["indent"])
        path = [(d, operator) for d, operator in path if d < depth] + [(depth, found["operator"])]
        if found["operator"] == _SOURCE:
            yield from (operator for _, operator in path)


# Functions of Python


def read_types_without_session() -> None:
    """Lets a module declare `F.udf("double")` when it is imported, before Spark has started.

    Assumes that PySpark's decorators read the text of a type through one function of its module `udf`, which asks the
    JVM. Without a session `lozenge.ddl` reads it.
    """
    module: Any = importlib.import_module("pyspark.sql.udf")
    by_spark = importlib.import_module("pyspark.sql.types")._parse_datatype_string

    def read(text: str) -> DataType:
        if SparkContext._active_spark_context is not None:
            found: DataType = by_spark(text)
            return found
        field = {"name": "", "type": ddl.data_type(text), "nullable": True, "metadata": {}}
        return StructType.fromJson({"fields": [field]}).fields[0].dataType

    module._parse_datatype_string = read


def name_lines_in_errors() -> None:
    """Lets a failed column expression name its line of Python, from now on in every session of this process.

    Assumes that PySpark keeps whether it does as its first session was set.
    """
    importlib.import_module("pyspark.errors.utils")._enable_debugging_cache = True  # type: ignore[attr-defined]


# The Kafka connector


class PooledProducer:
    """The Java producer that the connector's tasks in this JVM use for exactly these `params`.

    Assumes that the connector keeps one producer for each set of parameters, and that its writers ask the same pool
    with the same parameters. With another key the tasks would use another producer, which for a transactional id has
    no transaction and refuses to send.
    """

    def __init__(self, spark: SparkSession, params: Mapping[str, str]) -> None:
        producers = java(spark).org.apache.spark.sql.kafka010.producer
        self._pool = getattr(getattr(producers, "InternalKafkaProducerPool$"), "MODULE$")
        self._cached = self._pool.acquire(dict(params))
        self.java: Any = self._cached.producer()

    def release(self) -> None:
        """Gives it back to the pool."""
        self._pool.release(self._cached)


# Scala through py4j


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(number) for number in range(sequence.size()))


def _field(thing: Any, name: str) -> Any | None:
    return next((field for field in thing.getClass().getDeclaredFields() if field.getName() == name), None)
