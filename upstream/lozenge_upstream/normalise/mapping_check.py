"""What only Java and Spark can say of a mapping: whether its patterns compile, its zones and forms of times exist, and
whether Spark can plan it."""

from collections.abc import Callable, Iterator

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lozenge.errors import first_line
from lozenge.spark.internals import driver_jvm
from lozenge_upstream.normalise.declarations import Local, TimestampText, all_within
from lozenge_upstream.normalise.mapping import Mapping
from lozenge_upstream.normalise.mapping_files import Mappings, RefusedMapping, wrong_mappings
from lozenge_upstream.normalise.normaliser import RAW, normalise
from lozenge_upstream.normalise.times import spark_format

_KEY = b"no record is read with it"


def runnable(spark: SparkSession, read: Mappings) -> Mappings:
    """`read` without the mappings that `spark` cannot run; these are refused, and the others do not notice."""
    problems = {mapping.source: tuple(_problems(spark, mapping)) for mapping in read.usable}
    usable = [mapping for mapping in read.usable if not problems[mapping.source]]
    refused = [RefusedMapping(m.source, m.topic, problems[m.source]) for m in read.usable if problems[m.source]]
    return Mappings(usable, [*read.refused, *refused])


def all_runnable(spark: SparkSession, read: Mappings) -> list[Mapping]:
    """The mappings of `read`, if `spark` can run every one; raises ConfigError with every problem of all."""
    found = runnable(spark, read)
    if found.refused:
        raise wrong_mappings(found.refused)
    return found.usable


def _problems(spark: SparkSession, mapping: Mapping) -> Iterator[str]:
    for name, pattern in mapping.patterns:
        if problem := _pattern_problem(spark, pattern):
            yield f"{mapping.source}: {name}: {pattern!r} is no regular expression of Java's: {problem}"
    for name, spec in (part for field, made in mapping.declared() for part in all_within(field, made)):
        if isinstance(spec, Local) and spec.zone and (problem := _zone_problem(spark, spec.zone)):
            yield f"{mapping.source}: {name}: {spec.zone!r} is no zone of the IANA database that Java has: {problem}"
        if isinstance(spec, TimestampText) and (problem := _format_problem(spark, spark_format(spec))):
            yield f"{mapping.source}: {name}: {spec.format!r} is no form of a time that Spark reads: {problem}"
    try:
        _ = normalise(spark.createDataFrame([], RAW), mapping, _KEY).schema
    except PySparkException as error:
        yield f"{mapping.source}: Spark cannot plan it: {first_line(error)}"


def _zone_problem(spark: SparkSession, zone: str) -> str:
    return _java_problem(lambda: driver_jvm.java(spark).java.time.ZoneId.of(zone))


def _format_problem(spark: SparkSession, form: str) -> str:
    read = F.try_to_timestamp(F.lit("2026-03-01"), F.lit(form))
    return _java_problem(lambda: spark.range(1).select(read).collect())


def _pattern_problem(spark: SparkSession, pattern: str) -> str:
    compile_ = driver_jvm.java(spark).java.util.regex.Pattern.compile

    def compiled() -> None:
        compile_(pattern)
        compile_(f"(?:{pattern})$")  # as it is run: a comment or a quotation must not swallow what follows

    return _java_problem(compiled)


def _java_problem(call: Callable[[], object]) -> str:
    """The first line of what Java says against the call; "" if nothing."""
    try:
        call()
    except Exception as error:  # py4j's, of which PySpark translates some
        java = getattr(error, "java_exception", None)
        return first_line(ValueError(java.getMessage())) if java is not None else first_line(error)
    return ""
