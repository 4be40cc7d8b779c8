"""Settings of Spark: whether it has them, and what it reads from them. It ignores a setting that it does not know."""

from typing import Any, cast

from pyspark.sql import SparkSession

from lozenge.spark.internals.driver_jvm import java


def has_setting(spark: SparkSession, name: str) -> bool:
    """Whether Spark SQL declares a setting. Assumes that it registers all but one, whose name it keeps elsewhere."""
    known = _companion(java(spark).org.apache.spark.sql.internal, "SQLConf")
    return bool(known.containsConfigKey(name)) or name == known.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS().parent().key()


def has_class(spark: SparkSession, name: str) -> bool:
    """Whether a class of this name can be loaded as Spark loads what a setting names."""
    loader = java(spark).org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    try:
        return bool(java(spark).java.lang.Class.forName(name, False, loader).getName() == name)
    except Exception:  # py4j's, for whatever Java raised: there is no such class
        return False


def rocksdb_settings(spark: SparkSession) -> tuple[bool, bool, int]:
    """What the state store reads: whether it writes change logs, whether memory is bounded, and the bound in MB.

    Assumes the object in which it keeps them; Spark SQL does not declare them.
    """
    state = java(spark).org.apache.spark.sql.execution.streaming.state
    nothing = _companion(java(spark).scala.collection.immutable, "Map").empty()
    conf = cast(Any, spark)._jsparkSession.sessionState().conf()
    found = _companion(state, "RocksDBConf").apply(state.StateStoreConf(conf, nothing))
    return (
        bool(found.enableChangelogCheckpointing()),
        bool(found.boundedMemoryUsage()),
        int(found.totalMemoryUsageMB()),
    )


def _companion(package: Any, name: str) -> Any:
    """The companion object of a Scala class."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")
