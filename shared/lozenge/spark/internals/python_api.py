"""What PySpark does in Python before it asks the JVM."""

import importlib
from typing import Any

from pyspark.sql.types import DataType, StructType

from lozenge import ddl
from lozenge.spark.internals.driver_jvm import spark_runs_here


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


def name_lines_in_errors() -> None:
    """Lets a failed column expression name its line of Python, from now on in every session of this process.

    Assumes that PySpark keeps whether it does as its first session was set.
    """
    importlib.import_module("pyspark.errors.utils")._enable_debugging_cache = True  # type: ignore[attr-defined]
