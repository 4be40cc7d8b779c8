"""Settings that Spark ignores in silence once it no longer has them: their names, and the classes that they name."""

import re
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge.job.query import canonical_events
from lozenge.spark.conf import session_conf
from lozenge.spark.internals.plans import physical_operators
from lozenge.spark.internals.settings import has_class, has_setting, rocksdb_settings
from lozenge_upstream.streaming.query_builder import SPARK
from tests.streams import AUTH

_CONF = session_conf(cores=1, memory_mb=512, new_mb=None, master=None, jars=[], overrides=SPARK)
_EXCLUDED = "spark.sql.optimizer.excludedRules"
_ROCKSDB = "spark.sql.streaming.stateStore.rocksdb."
_WHOLE_STAGE, _FACTORY = "spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode"
_COMPILED = 8_000
"""The bytes of the largest method that Java compiles; it interprets a larger one (HugeMethodLimit)."""


def test_each_setting_of_spark_sql_is_one_that_spark_has(spark: SparkSession) -> None:
    names = [name for name in _CONF if name.startswith("spark.sql.") and not name.startswith(_ROCKSDB)]
    assert not [name for name in names if not has_setting(spark, name)]
    assert not has_setting(spark, "spark.sql.never.declared")


def test_the_state_store_reads_each_of_its_settings(spark: SparkSession) -> None:
    assert {name.removeprefix(_ROCKSDB) for name in _CONF if name.startswith(_ROCKSDB)} == {
        "changelogCheckpointing.enabled",
        "boundedMemoryUsage",
        "maxMemoryUsageMB",
    }
    assert rocksdb_settings(spark) == (True, True, int(str(_CONF[f"{_ROCKSDB}maxMemoryUsageMB"])))


@pytest.mark.parametrize("name", sorted(name for name in _CONF if name.endswith(("Class", ".impl"))))
def test_a_class_that_a_setting_names_is_there(spark: SparkSession, name: str) -> None:
    assert has_class(spark, str(_CONF[name]))
    assert not has_class(spark, f"{_CONF[name]}OfNobody")


def test_without_the_excluded_rule_a_records_targets_are_computed_once(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    records = session.readStream.schema("targets array<string>").json(str(tmp_path))
    targets = F.explode("targets")
    assert "Filter" in physical_operators(records.select(targets))
    session.conf.set(_EXCLUDED, SPARK[_EXCLUDED])
    assert "Filter" not in physical_operators(records.select(targets))


def test_whole_stage_code_of_a_decoded_event_is_a_method_that_java_does_not_compile(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    session = spark.newSession()
    session.conf.set(_FACTORY, "CODEGEN_ONLY")
    assert session.conf.get(_WHOLE_STAGE) == "false"
    assert _largest_methods(_events(session), capsys) == []
    session.conf.set(_WHOLE_STAGE, "true")
    assert max(_largest_methods(_events(session), capsys)) > _COMPILED


def _events(session: SparkSession) -> DataFrame:
    value = F.col("id").cast("string").cast("binary").alias("value")
    headers = F.array().cast("array<struct<key: string, value: binary>>").alias("headers")
    records = session.range(3).select(value, F.lit(0).alias("partition"), F.col("id").alias("offset"), headers)
    return canonical_events.events(records, AUTH.schemas, AUTH, AUTH.column(AUTH.primary))


def _largest_methods(frame: DataFrame, capsys: pytest.CaptureFixture[str]) -> list[int]:
    """The bytes of the largest method of each class of whole-stage code."""
    frame.explain("codegen")
    return [int(size) for size in re.findall(r"maxMethodCodeSize:(\d+)", capsys.readouterr().out)]
