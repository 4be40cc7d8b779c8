"""What detect() returned is refused before a query starts, with the operator and what to write instead."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType

from lozenge import Fold, State, alert, fold
from lozenge.errors import DetectorError
from lozenge.job.query.plan_checks import check_realtime, check_stateless, check_streamable, checked_result
from tests.shared.job.commit.scripted import declared
from tests.shared.job.query.conftest import events, stream

Plan = Callable[[DataFrame], DataFrame]
REALTIME = declared(mode="realtime")


def refusal(check: Callable[..., Any], *arguments: Any, **more: Any) -> str:
    with pytest.raises(DetectorError) as caught:
        check(*arguments, **more)
    return str(caught.value)


@pytest.mark.parametrize("result", [None, "alerts", [1, 2]], ids=repr)
def test_a_result_of_another_kind_is_named(result: object) -> None:
    said = refusal(checked_result, "one", declared(), result)
    assert f"detect() returned {type(result).__name__}, neither a DataFrame nor a fold" in said


def test_a_fold_belongs_to_a_stateful_detector_and_to_no_other(query_spark: SparkSession) -> None:
    frame = events(query_spark).select(*alert(reason=F.lit("seen")))
    folded: Fold[Any] = fold(
        events(query_spark), by="card_id", state=State, step=lambda *of: [], expires=timedelta(days=1)
    )
    assert checked_result("one", declared("stateful"), folded) is folded
    assert checked_result("one", declared(), frame) is frame
    assert 'returned a Fold, but kind = "rule"' in refusal(checked_result, "one", declared(), folded)
    assert 'returned a DataFrame, but kind = "stateful"' in refusal(checked_result, "one", declared("stateful"), frame)


def test_a_frame_without_alerts_is_refused_with_the_columns_that_it_lacks(query_spark: SparkSession) -> None:
    frame = events(query_spark).select(*alert(reason=F.lit("seen"))).drop("score", "labels")
    said = refusal(checked_result, "one", declared(), frame)
    assert "it lacks score, labels" in said
    assert ".select(*alert(reason=...))" in said


STATEFUL: dict[str, tuple[Plan, str]] = {
    "a count": (lambda e: e.groupBy("card_id").count(), "Aggregate"),
    "distinct events": (lambda e: e.distinct(), "Deduplicate"),
    "no event twice": (lambda e: e.dropDuplicates(["event_id"]), "Deduplicate"),
    "the first ones": (lambda e: e.limit(3), "GlobalLimit"),
    "two streams": (lambda e: e.alias("a").join(e.alias("b"), F.expr("a.card_id = b.card_id")), "Join of two streams"),
}


@pytest.mark.parametrize("name", STATEFUL)
def test_state_of_spark_is_refused_by_the_operator_that_keeps_it(
    name: str, query_spark: SparkSession, tmp_path: Path
) -> None:
    plan, operator = STATEFUL[name]
    said = refusal(check_stateless, "one", plan(stream(query_spark, tmp_path)))
    assert operator in said
    assert "lost at a restart" in said
    assert 'kind = "aggregate"' in said


def test_expressions_and_joins_with_tables_keep_no_state(query_spark: SparkSession, tmp_path: Path) -> None:
    limits = query_spark.createDataFrame([("5411", 10.0)], "mcc string, most double")
    counted = limits.groupBy("mcc").agg(F.max("most").alias("most"))
    frame = stream(query_spark, tmp_path).join(F.broadcast(counted), "mcc").where("amount > most")
    check_stateless("one", frame)
    check_streamable("one", frame)


def test_what_spark_cannot_stream_is_refused_in_its_words(query_spark: SparkSession, tmp_path: Path) -> None:
    ranked = stream(query_spark, tmp_path).orderBy("amount")
    said = refusal(check_streamable, "one", ranked)
    assert "Spark cannot run it as a stream" in said
    assert "Sorting" in said


SLOW: dict[str, tuple[Plan, str, str]] = {
    "python": (
        lambda e: e.withColumn("risk", F.udf(lambda amount: 0.5, DoubleType())("amount")),
        "ArrowEvalPython",
        "a Python function holds rows until the batch ends",
    ),
    "a sort": (lambda e: e.orderBy("amount"), "Sort", "a stream without batches has no order"),
    "a union": (lambda e: e.unionByName(e), "Union", "combine conditions in one where"),
}


@pytest.mark.parametrize("name", SLOW)
def test_real_time_mode_refuses_what_needs_a_batch_with_what_to_write(
    name: str, query_spark: SparkSession, tmp_path: Path
) -> None:
    plan, operator, hint = SLOW[name]
    said = refusal(check_realtime, "one", REALTIME, plan(stream(query_spark, tmp_path)))
    assert 'mode = "realtime" cannot run' in said
    assert operator in said
    assert hint in said
    assert 'remove mode = "realtime"' in said


def test_real_time_mode_runs_expressions_and_a_broadcast_table(query_spark: SparkSession, tmp_path: Path) -> None:
    limits = query_spark.createDataFrame([("5411", 10.0)], "mcc string, most double")
    frame = stream(query_spark, tmp_path).join(F.broadcast(limits), "mcc").where("amount > most")
    check_realtime("one", REALTIME, frame.select(*alert(reason=F.lit("over"))))


def test_the_partitions_of_an_aggregate_are_a_union_and_streams_of_a_rule_are_not(
    query_spark: SparkSession, tmp_path: Path
) -> None:
    aggregate = declared("aggregate", mode="realtime")
    both = stream(query_spark, tmp_path).unionByName(stream(query_spark, tmp_path))
    check_realtime("one", aggregate, both)
    assert "cannot run Union" in refusal(check_realtime, "one", aggregate, both, single_stream=True)
    assert "cannot run Union" in refusal(check_realtime, "one", REALTIME, both)
