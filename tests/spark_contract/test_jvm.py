"""What is assumed about PySpark's JVM."""

from importlib import import_module
from importlib.util import find_spec

import psutil
import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from lozenge.spark import avro
from lozenge.spark.internals import driver_jvm, errors
from tests.streams import AUTH


class Answer:
    """A Java Callable in Python."""

    def call(self) -> int:
        return 42

    class Java:
        implements = ("java.util.concurrent.Callable",)


def test_public_java_classes_are_attributes_by_their_full_names(spark: SparkSession) -> None:
    jvm = driver_jvm.java(spark)
    assert int(jvm.java.lang.Math.max(3, 4)) == 4
    assert jvm.java.time.Duration.ofMillis(1500).getSeconds() == 1
    assert jvm.org.apache.kafka.common.TopicPartition("topic", 2).partition() == 2


def test_functions_of_columns_are_looked_up_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def column() -> Column:
        return F.concat(F.upper(F.lit("x")), F.col("id").cast("string"), F.lit("y"))

    monkeypatch.setattr("pyspark.errors.utils._enable_debugging_cache", False)
    column()
    client, sent = driver_jvm.java(spark)._gateway_client, list[str]()
    send = client.send_command

    def noted(command: str, *more: object) -> object:
        sent.append(command)
        return send(command, *more)

    monkeypatch.setattr(client, "send_command", noted)
    made = column()
    assert [command for command in sent if command.startswith("r\n")] == [], "these ask what something is"
    assert sum(command.startswith("c\n") for command in sent) < 20
    assert spark.range(1).select(made).collect() == [("X0y",)]


def test_java_calls_a_python_object_that_names_its_interface(spark: SparkSession) -> None:
    driver_jvm.accept_callbacks(spark)
    task = driver_jvm.java(spark).java.util.concurrent.FutureTask(Answer())
    task.run()
    assert task.get() == 42


def test_the_gateway_holds_the_process_of_the_jvm(spark: SparkSession) -> None:
    process = driver_jvm.jvm_process(spark)
    assert process.poll() is None
    assert process.stdin is not None
    assert psutil.Process(process.pid).name() == "java"
    assert psutil.Process(process.pid).ppid() == psutil.Process().pid


def test_the_gateway_is_kept_once_the_jvm_has_named_its_port(spark: SparkSession) -> None:
    assert driver_jvm.jvm_has_answered()


def test_a_context_in_the_jvm_knows_whether_it_has_stopped(spark: SparkSession) -> None:
    assert not driver_jvm.has_stopped(spark)
    assert not driver_jvm.spark_context(spark).isStopped()


def test_decoding_leaves_no_schema_behind_in_the_jvm(spark: SparkSession) -> None:
    """Each task parses the schema again. Avro's fast reader would keep two of its records for each of 60 tasks."""
    schema = AUTH.event_schema
    data = F.concat(F.lit(bytes([0]) + schema.id.to_bytes(4, "big")), F.col("id").cast("string").cast("binary"))
    malformed = spark.range(3, numPartitions=3).select(avro.decode(data, {schema: schema}).alias("read"))
    malformed = malformed.where("read.end is null")
    before = instances(spark, "org.apache.avro.Schema$RecordSchema")
    for _ in range(20):
        assert malformed.count() == 3
    assert instances(spark, "org.apache.avro.Schema$RecordSchema") < before + 100


def instances(spark: SparkSession, name: str) -> int:
    """How many objects of a class the JVM has after a collection."""
    jvm = driver_jvm.java(spark)
    array, of = jvm.java.lang.reflect.Array, jvm.java.lang.Class.forName
    arguments, signature = array.newInstance(of("java.lang.Object"), 1), array.newInstance(of("java.lang.String"), 1)
    arguments[0], signature[0] = array.newInstance(of("java.lang.String"), 0), "[Ljava.lang.String;"
    beans = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
    commands = jvm.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand")
    jvm.java.lang.System.gc()
    histogram = str(beans.invoke(commands, "gcClassHistogram", arguments, signature)).splitlines()
    return sum(int(line.split()[1]) for line in histogram if name in line.split())


def test_a_jvm_that_ends_at_its_start_has_an_error_condition() -> None:
    assert errors.ended_at_start(PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={}))


def test_the_slow_import_of_the_first_call_is_there() -> None:
    assert find_spec(driver_jvm.IMPORTED_AT_FIRST_CALL) is not None
    assert import_module(driver_jvm.IMPORTED_AT_FIRST_CALL).__name__ == driver_jvm.IMPORTED_AT_FIRST_CALL
