"""What PySpark does in Python before it asks the JVM."""

import functools
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import SparkContext
from pyspark.errors.utils import is_debugging_enabled
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructType

from lozenge import ddl
from lozenge.spark.internals.driver_jvm import java, spark_runs_here

_LOOKED_UP = (
    *("functions", "org.apache.spark.sql.functions", "PythonUtils", "PythonSQLUtils"),
    "org.apache.spark.sql.catalyst.trees.PySparkCurrentOrigin",
)
"""Java classes as PySpark names them at each call that makes a column."""
_SEPARATOR = "\x1f"
_LONG_LIST = 6
"""From so many literals on, one message with all of them is fewer messages."""


def read_types_without_session() -> None:
    """Lets a module declare `F.udf("double")` when it is imported, before Spark has started.

    Assumes that PySpark's decorators read the text of a type through one function of its module `udf`, which asks the
    JVM. Without a session `lozenge.ddl` reads it.
    """
    module: Any = importlib.import_module("pyspark.sql.udf")
    by_spark = importlib.import_module("pyspark.sql.types")._parse_datatype_string

    def read(text: str) -> DataType:
        if spark_runs_here():
            found: DataType = by_spark(text)
            return found
        field = {"name": "", "type": ddl.data_type(text), "nullable": True, "metadata": {}}
        return StructType.fromJson({"fields": [field]}).fields[0].dataType

    module._parse_datatype_string = read


@contextmanager
def capture_call_sites() -> Iterator[None]:
    """Lets a column expression that is made within the block name its line of Python when it fails.

    It takes several messages to the JVM for each, so it is for an author's expressions and not for the platform's.
    Assumes that PySpark keeps whether it does in a variable of the process, as its first session was set.
    """
    kept: Any = importlib.import_module("pyspark.errors.utils")
    before, kept._enable_debugging_cache = kept._enable_debugging_cache, True
    try:
        yield
    finally:
        kept._enable_debugging_cache = before


def remember_functions(spark: SparkSession) -> None:
    """Lets PySpark look up the Java functions that make columns once, not at each call of one.

    Else two of three messages to the JVM are such look-ups. For a name without its package Java looks into each of 300
    jars for each package that PySpark imports: together half the time that it takes to write down a large query.

    Assumes that PySpark finds these classes as attributes of py4j's view of the JVM, and calls only methods of them.
    """
    jvm = java(spark)
    for name in _LOOKED_UP:
        if not isinstance(found := getattr(jvm, name), _Methods):
            setattr(jvm, name, _Methods(found))


def batch_isin_literals() -> None:
    """Lets `Column.isin` send a long list of string literals in one message, in every session of this process.

    Else each literal is three messages: half of all that a mapping with codes of currencies and countries takes.

    Assumes that PySpark's class of columns keeps Java's at `_jc`, and that this has `isInCollection`.
    """
    kind: Any = importlib.import_module("pyspark.sql.classic.column").Column
    own = kind.isin
    if hasattr(own, "batches_literals"):
        return

    @functools.wraps(own)
    def isin(column: Any, *values: Any) -> Any:
        literals = values[0] if len(values) == 1 and isinstance(values[0], list | set) else values
        if len(literals) < _LONG_LIST or is_debugging_enabled() or not all(map(_is_plain, literals)):
            return own(column, *values)
        context: Any = SparkContext._active_spark_context
        tokens = getattr(context._jvm, "java.util.StringTokenizer")(_SEPARATOR.join(literals), _SEPARATOR)
        return kind(column._jc.isInCollection(getattr(context._jvm, "java.util.Collections").list(tokens)))

    isin.batches_literals = True  # type: ignore[attr-defined]
    kind.isin = isin


def _is_plain(value: object) -> bool:
    return type(value) is str and value != "" and _SEPARATOR not in value


class _Methods:
    """The static methods of a Java class."""

    def __init__(self, java_class: Any) -> None:
        self._class = java_class

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._class, name)
        setattr(self, name, method)
        return method
