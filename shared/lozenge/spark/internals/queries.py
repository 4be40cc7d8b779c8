"""A running query: its progress, its end, and in Real-Time Mode how long its batches last."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from lozenge.spark.internals.driver_jvm import java
from lozenge.spark.internals.scala import declared_field, items


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


def stop(query: StreamingQuery) -> None:
    """Stops a query, and lets go of the session that Spark has made for it."""
    session = session_of(query._jsq)
    query.stop()
    forget_listener(session)


def session_of(query: Any) -> Any:
    """The session that Spark has made for a Java query, a copy of the one that started it. Assumes its Scala name."""
    return query.streamingQuery().sparkSessionForStream()


def forget_listener(session: Any) -> bool:
    """Takes the listener of a Java session's queries from the context, which holds the session as long as it has it.

    A session has one once something has looked for its queries, as every query with state does. Assumes that the
    manager of a session's queries has it in a private field; if not, the session is kept: False.
    """
    manager = session.streams()
    if (found := declared_field(manager, "listenerBus")) is None:
        return False
    found.setAccessible(True)
    session.sparkContext().removeSparkListener(found.get(manager))
    return True


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
    fields = [(relation, field) for relation in relations if (field := declared_field(relation, _DURATION)) is not None]
    for relation, field in fields:
        field.setAccessible(True)
        field.set(relation, duration)
    return bool(fields) and len(fields) == len(relations)


def source_relations(query: StreamingQuery) -> list[Any]:
    """Of each source its relation, once a batch has run. Assumes that Spark shows the plan of the running query."""
    leaves = query._jsq.streamingQuery().logicalPlan().collectLeaves()
    return [leaf.relation() for leaf in items(leaves) if leaf.isStreaming()]


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
