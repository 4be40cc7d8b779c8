"""What only Java and Spark can say of a mapping: whether its patterns compile, its zones and forms of times exist, and
whether Spark can plan it."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lozenge.errors import first_line
from lozenge.spark.internals import driver_jvm
from lozenge.streams.fields import fields_within
from lozenge.streams.folder import SCHEMA
from lozenge.toml_places import Problem
from lozenge_upstream.normalise.declarations import Condition, Local, Text, TimestampText, Token
from lozenge_upstream.normalise.mapping import Mapping
from lozenge_upstream.normalise.mapping_files import Mappings, RefusedMapping, wrong_mappings
from lozenge_upstream.normalise.normaliser import RAW, normalise
from lozenge_upstream.normalise.times import spark_format

_KEY = b"no record is read with it"


def runnable(spark: SparkSession, read: Mappings) -> Mappings:
    """`read` without the mappings that `spark` cannot run; these are refused, and the others do not notice.

    Of a mapping that is refused already, what can be read is asked too, so all of its problems are there at once.
    """
    patterns = _Patterns(spark)
    usable, refused = list[Mapping](), list[RefusedMapping]()
    for each in read.refused:
        further = each.file.said(_problems(spark, each.readable, patterns)) if each.readable is not None else []
        refused.append(replace(each, problems=(*each.problems, *further)))
    for mapping in read.usable:
        file = read.file_of(mapping)
        found = [*_of_schema(mapping, patterns), *file.said(_problems(spark, mapping, patterns))]
        if problem := "" if found else _plan_problem(spark, mapping):
            found = [f"{file.name}: Spark cannot plan it: {problem}"]
        if found:
            refused.append(RefusedMapping(mapping.source, mapping.topic, tuple(found), mapping, file))
        else:
            usable.append(mapping)
    return replace(read, usable=usable, refused=refused)


def all_runnable(spark: SparkSession, read: Mappings) -> list[Mapping]:
    """The mappings of `read`, if `spark` can run every one; raises ConfigError with every problem of all."""
    found = runnable(spark, read)
    if found.refused:
        raise wrong_mappings(found.refused)
    return found.usable


class _Patterns:
    """Asks Java about regular expressions, about each once."""

    def __init__(self, spark: SparkSession) -> None:
        self._compile = driver_jvm.java(spark).java.util.regex.Pattern.compile
        self._known: dict[str, str] = {}

    def problem(self, pattern: str) -> str:
        """Why Java cannot run it; "" if it can."""
        if pattern not in self._known:
            # also as it is run: a comment or a quotation must not swallow what follows
            found = _java_problem(lambda: (self._compile(pattern), self._compile(f"(?:{pattern})$")))
            self._known[pattern] = found and f"{pattern!r} is no regular expression of Java's: {found}"
        return self._known[pattern]


def _problems(spark: SparkSession, mapping: Mapping, patterns: _Patterns) -> Iterator[Problem]:
    for place, part in mapping.parts():
        pattern = part.pattern if isinstance(part, Text | Token | Condition) else None
        if pattern is not None and (problem := patterns.problem(pattern)):
            yield Problem((*place, "pattern"), problem)
        if isinstance(part, Local) and part.zone and (problem := _zone_problem(spark, part.zone)):
            yield Problem((*place, "zone"), f"{part.zone!r} is no zone of the IANA database that Java has: {problem}")
        if isinstance(part, TimestampText) and (problem := _format_problem(spark, spark_format(part))):
            yield Problem((*place, "format"), f"{part.format!r} is no form of a time that Spark reads: {problem}")


def _of_schema(mapping: Mapping, patterns: _Patterns) -> list[str]:
    """The patterns of the stream's own fields, which upstream runs too."""
    asked = ((name, field.pattern) for name, field in fields_within(mapping.stream.fields) if field.pattern is not None)
    return [f"{SCHEMA}: {name}: {problem}" for name, pattern in asked if (problem := patterns.problem(pattern))]


def _plan_problem(spark: SparkSession, mapping: Mapping) -> str:
    try:
        _ = normalise(spark.createDataFrame([], RAW), mapping, _KEY).schema
    except PySparkException as error:
        return first_line(error)
    return ""


def _zone_problem(spark: SparkSession, zone: str) -> str:
    return _java_problem(lambda: driver_jvm.java(spark).java.time.ZoneId.of(zone))


def _format_problem(spark: SparkSession, form: str) -> str:
    read = F.try_to_timestamp(F.lit("2026-03-01"), F.lit(form))
    return _java_problem(lambda: spark.range(1).select(read).collect())


def _java_problem(call: Callable[[], object]) -> str:
    """The first line of what Java says against the call; "" if nothing."""
    try:
        call()
    except Exception as error:  # py4j's, of which PySpark translates some
        java = getattr(error, "java_exception", None)
        return first_line(ValueError(java.getMessage())) if java is not None else first_line(error)
    return ""
