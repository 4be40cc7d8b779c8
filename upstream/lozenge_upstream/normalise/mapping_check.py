"""What only Java and Spark can say of a mapping: whether its patterns compile, and whether Spark can plan it."""

from collections.abc import Iterator

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lozenge.errors import first_line
from lozenge.spark import kafka_source
from lozenge.spark.internals import driver_jvm
from lozenge_upstream.normalise.mapping import Mapping
from lozenge_upstream.normalise.mapping_files import Mappings, RefusedMapping
from lozenge_upstream.normalise.mapping_transforms import Text, Token
from lozenge_upstream.normalise.normaliser import normalise

_KEY = b"no record is read with it"
_RAW = f"key binary, topic string, timestamp timestamp, timestampType int, {kafka_source.RECORDS}"


def runnable(spark: SparkSession, read: Mappings) -> Mappings:
    """`read` without the mappings that `spark` cannot run; these are refused, and the others do not notice."""
    problems = {mapping.source: tuple(_problems(spark, mapping)) for mapping in read.usable}
    usable = [mapping for mapping in read.usable if not problems[mapping.source]]
    refused = [RefusedMapping(m.source, m.topic, problems[m.source]) for m in read.usable if problems[m.source]]
    return Mappings(usable, [*read.refused, *refused])


def _problems(spark: SparkSession, mapping: Mapping) -> Iterator[str]:
    patterned = ((n, spec) for n, spec in mapping.fields.declared() if isinstance(spec, Text | Token))
    patterns = {name: spec.pattern for name, spec in patterned if spec.pattern}
    for name, pattern in patterns.items():
        if problem := _pattern_problem(spark, pattern):
            yield f"{mapping.source}: {name}: {pattern!r} is no regular expression of Java's: {problem}"
    try:
        _ = normalise(spark.createDataFrame([], _RAW), mapping, _KEY).schema
    except PySparkException as error:
        yield f"{mapping.source}: Spark cannot plan it: {first_line(error)}"


def _pattern_problem(spark: SparkSession, pattern: str) -> str:
    compile_ = driver_jvm.java(spark).java.util.regex.Pattern.compile
    try:
        compile_(pattern)
        compile_(f"(?:{pattern})$")  # as it is run: a comment or a quotation must not swallow what follows
    except Exception as error:  # py4j's, of which PySpark translates some
        java = getattr(error, "java_exception", None)
        return first_line(ValueError(java.getMessage())) if java is not None else first_line(error)
    return ""
