"""Names and forms of plans by which detectors are checked before they run."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge.spark.internals import plans

Plan = Callable[[DataFrame], DataFrame]


def _with_state(key: Any, frames: Iterator[Any], state: Any) -> Iterator[Any]:
    yield from frames


def _in_pandas(rows: DataFrame) -> DataFrame:
    return rows.groupBy("k").applyInPandasWithState(_with_state, "k string", "n int", "append", "NoTimeout")


def _selected(rows: DataFrame) -> DataFrame:
    """In SQL; a DataFrame's `distinct` is a Deduplicate."""
    rows.createOrReplaceTempView("contract")
    return rows.sparkSession.sql("SELECT DISTINCT k FROM contract")


@pytest.mark.parametrize(
    ("plan", "name"),
    [
        (lambda rows: rows.groupBy("k").count(), "Aggregate"),
        (lambda rows: rows.dropDuplicates(["k"]), "Deduplicate"),
        (_selected, "Distinct"),
        (lambda rows: rows.limit(3), "GlobalLimit"),
        (_in_pandas, "FlatMapGroups"),
    ],
)
def test_an_analysed_plan_names_the_operators_that_keep_state(stream: DataFrame, plan: Plan, name: str) -> None:
    assert [node for node in plans.logical_plan(plan(stream)).walk() if node.name.startswith(name)]


def test_an_analysed_join_has_the_streams_that_it_joins_as_inputs(spark: SparkSession, stream: DataFrame) -> None:
    static = spark.createDataFrame([("a", 1)], "k string, w int")
    (with_table,) = _joins(stream.join(static, "k"))
    (with_stream,) = _joins(stream.join(stream.select("k", F.col("v").alias("w")), "k"))
    assert [len(with_table.inputs), len(with_stream.inputs)] == [1, 2]


def _joins(frame: DataFrame) -> list[plans.LogicalNode]:
    return [node for node in plans.logical_plan(frame).walk() if node.name.startswith("Join")]


def _counted(rows: DataFrame) -> DataFrame:
    windows = rows.withWatermark("at", "1 minute").groupBy(F.window("at", "1 minute"), "k")
    return windows.agg(F.collect_set("v"))


@pytest.mark.parametrize(
    ("plan", "operators"),
    [
        (lambda rows: rows.where("v > 1").select("k"), {"Filter", "Project"}),
        (lambda rows: rows.select(F.explode(F.array("v", "v"))), {"Generate"}),
        (
            lambda rows: rows.select(F.udf(lambda text: text, "string", useArrow=False)("k")),
            {"Project", "BatchEvalPython"},
        ),
        (lambda rows: rows.mapInArrow(lambda batches: batches, "k string"), {"MapInArrow"}),
        (lambda rows: rows.dropDuplicates(["k"]), {"StreamingDeduplicate", "Exchange"}),
        (_counted, {"EventTimeWatermark", "Exchange", "ObjectHashAggregate", "StateStoreRestore", "StateStoreSave"}),
    ],
)
def test_a_physical_plan_is_a_tree_in_text_whose_leaves_are_sources(
    stream: DataFrame, plan: Plan, operators: set[str]
) -> None:
    found = plans.physical_operators(plan(stream))
    assert found >= {"StreamingRelation", *operators}


def test_what_is_read_besides_the_stream_is_no_operator_of_it(spark: SparkSession, stream: DataFrame) -> None:
    static = spark.createDataFrame([("a", 1)], "k string, w int").where("w > 0")
    found = plans.physical_operators(stream.join(F.broadcast(static), "k"))
    assert "BroadcastHashJoin" in found
    assert not {name for name in found if name.startswith(("BroadcastExchange", "Scan", "LocalTableScan"))}


def test_spark_checks_a_stream_before_it_is_started(stream: DataFrame) -> None:
    plans.check_streamable(stream.where("v > 1"))
    with pytest.raises(AnalysisException):
        plans.check_streamable(stream.groupBy("k").count())
