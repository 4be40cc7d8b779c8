"""Settings that Spark ignores in silence once it no longer has them: their names, and the classes that they name."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lozenge.spark.conf import session_conf
from lozenge.spark.internals import driver_jvm
from lozenge.spark.internals.plans import physical_operators
from lozenge_upstream.streaming.query_builder import SPARK

_CONF = session_conf(cores=1, memory_mb=512, new_mb=None, master=None, jars=[], overrides=SPARK)
_EXCLUDED = "spark.sql.optimizer.excludedRules"


def test_each_setting_of_spark_sql_is_one_that_spark_has(spark: SparkSession) -> None:
    known = _companion(driver_jvm.java(spark).org.apache.spark.sql.internal, "SQLConf")
    of_the_store = {name for name in _CONF if name.startswith("spark.sql.streaming.stateStore.rocksdb.")}
    unknown = {name for name in _CONF if name.startswith("spark.sql.") and not known.containsConfigKey(name)}
    assert unknown == of_the_store | {known.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS().parent().key()}


def test_the_state_store_reads_its_settings(spark: SparkSession) -> None:
    state = driver_jvm.java(spark).org.apache.spark.sql.execution.streaming.state
    empty = _companion(driver_jvm.java(spark).scala.collection.immutable, "Map").empty()
    session: Any = spark
    found = _companion(state, "RocksDBConf").apply(
        state.StateStoreConf(session._jsparkSession.sessionState().conf(), empty)
    )
    assert found.enableChangelogCheckpointing()
    assert found.boundedMemoryUsage()
    assert str(found.totalMemoryUsageMB()) == _CONF["spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB"]


@pytest.mark.parametrize("name", sorted(name for name in _CONF if name.endswith(("Class", ".impl"))))
def test_a_class_that_a_setting_names_is_there(spark: SparkSession, name: str) -> None:
    jvm = driver_jvm.java(spark)
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    assert jvm.java.lang.Class.forName(str(_CONF[name]), False, loader).getName() == _CONF[name]


def test_without_the_excluded_rule_a_records_targets_are_computed_once(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    records = session.readStream.schema("targets array<string>").json(str(tmp_path))
    targets = F.explode("targets")
    assert "Filter" in physical_operators(records.select(targets))
    session.conf.set(_EXCLUDED, SPARK[_EXCLUDED])
    assert "Filter" not in physical_operators(records.select(targets))


def _companion(package: Any, name: str) -> Any:
    """The companion object of a Scala class."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")
