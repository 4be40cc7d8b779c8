"""The author's function is called with settings and tables; what it does wrong is named before a query starts."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge import Detector, Settings, State, Tables, alert, fold
from lozenge.detector.loader import LoadedDetector
from lozenge.errors import ConfigError, DecodeError, DetectError, DetectorError, EncodeError
from lozenge.job.batch_result import FailedRecord
from lozenge.job.operators.aggregate_operator import AggregateOperator
from lozenge.job.operators.fold_operator import FoldOperator
from lozenge.job.operators.rule_operator import RuleOperator
from lozenge.job.query.poison_search import Ranges
from lozenge.job.query.query_builder import QueryBuilder, detect
from tests.shared.job.commit.scripted import LIVE, declared
from tests.shared.job.query.conftest import event, events, stream
from tests.streams import AUTH

ALL: Ranges = {1: (0, 3)}
PARTITIONS = 2


class Limit(Settings):
    limit: float = 10.0


def over(events: DataFrame, settings: Limit, tables: Tables) -> DataFrame:
    if settings.limit < 0:
        raise ValueError("no limit is negative")
    return events.where(F.col("amount") > settings.limit).select(*alert(reason=F.lit("over")))


class Input:
    """Three events, as a range and as a stream; those of `broken` offsets cannot be decoded."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder = spark, folder
        self.broken: set[int] = set()
        self.excluded: list[FailedRecord] = []

    def bounded(self, ranges: Ranges) -> DataFrame:
        [(begin, end)] = ranges.values()
        kept = events(self._spark, *(event(n, amount=Decimal(n + 9)) for n in range(3)))
        kept = kept.where(F.col("_input.offset").between(begin, end - 1))
        raised = F.raise_error(F.lit("no event")).cast("string")
        bad = F.col("_input.offset").isin([*self.broken])
        return kept.withColumn("mcc", F.when(bad, raised).otherwise(F.col("mcc"))) if self.broken else kept

    def stream(self, offsets: Mapping[int, int], max_batch: int | None) -> DataFrame:
        return stream(self._spark, self._folder)


Build = Callable[..., QueryBuilder]


@pytest.fixture
def built(query_spark: SparkSession, tmp_path: Path) -> Build:
    """A builder of the query of this function."""

    def built(
        function: Callable[..., Any] = over, *, taken: Mapping[str, str] | None = None, **manifest: Any
    ) -> QueryBuilder:
        loaded = LoadedDetector("one", "1.0.0", Detector(function, Limit), declared(**manifest), tmp_path, AUTH)
        frame = query_spark.createDataFrame([("5411", 5.0)], "mcc string, most double")
        tables: Any = SimpleNamespace(taken=dict(taken or {}), load=lambda spark: dict.fromkeys(taken or {}, frame))
        source: Any = Input(query_spark, tmp_path)
        return QueryBuilder(loaded, LIVE, Limit(), source, tables)

    return built


def test_settings_that_detect_refuses_are_found_and_the_present_ones_stay(built: Build) -> None:
    builder = built()
    with pytest.raises(DetectorError, match="detect\\(\\) raised ValueError: no limit is negative"):
        builder.check(Limit(limit=-1), PARTITIONS)
    builder.check(Limit(limit=99), PARTITIONS)
    assert builder.settings == Limit()
    assert builder.operator({0: 0}, 10, PARTITIONS), "its query is planned as before"


def test_settings_that_make_a_plan_which_cannot_run_are_found(built: Build) -> None:
    def counts_above_a_limit(events: DataFrame, settings: Limit, tables: Tables) -> DataFrame:
        return over(events.distinct() if settings.limit > 50 else events, settings, tables)

    builder = built(counts_above_a_limit)
    builder.check(Limit(limit=50), PARTITIONS)
    with pytest.raises(DetectorError, match="keep state in Spark"):
        builder.check(Limit(limit=51), PARTITIONS)


def test_settings_by_which_a_fold_loses_its_key_are_found(built: Build) -> None:
    def folds(events: DataFrame, settings: Limit, tables: Tables) -> Any:
        by = "card_id" if settings.limit < 50 else "merchant_id"
        return fold(events, by=by, state=State, step=lambda *of: [], expires=timedelta(days=1))

    builder = built(folds, kind="stateful")
    builder.check(Limit(limit=49), PARTITIONS)
    with pytest.raises(DetectorError, match="lacks the detector's key card_id"):
        builder.check(Limit(limit=50), PARTITIONS)


def test_without_the_tables_nothing_is_said_about_settings(built: Build) -> None:
    def joins(events: DataFrame, settings: Limit, tables: Tables) -> DataFrame:
        return over(events.join(F.broadcast(tables["limits"]), "mcc"), settings, tables)

    declared_table = {"limits": {"path": "limits.parquet"}}
    built(joins, tables=declared_table).check(Limit(limit=-1), PARTITIONS)
    with_table = built(joins, tables=declared_table, taken={"limits": "v1"})
    with_table.check(Limit(limit=5), PARTITIONS)
    with pytest.raises(DetectorError, match="no limit is negative"):
        with_table.check(Limit(limit=-1), PARTITIONS)


@pytest.mark.parametrize("error", [KeyError("limit"), ZeroDivisionError("by zero"), SystemExit(3)], ids=repr)
def test_whatever_detect_raises_is_an_error_of_the_detector(error: BaseException, built: Build) -> None:
    def fails(*of: object) -> DataFrame:
        raise error

    with pytest.raises(DetectorError, match=f"detect\\(\\) raised {type(error).__name__}"):
        built(fails).operator({0: 0}, 10, PARTITIONS)


def test_an_error_of_the_platform_is_said_as_it_is(query_spark: SparkSession) -> None:
    def fails(*of: object) -> DataFrame:
        raise ConfigError("reading the table", hint="correct it")

    loaded = LoadedDetector("one", "1.0.0", Detector(fails, Limit), declared(), Path(), AUTH)
    with pytest.raises(ConfigError, match="reading the table"):
        detect("one", loaded, events(query_spark), Limit(), {})


def test_each_kind_has_its_operator(built: Build) -> None:
    def folds(events: DataFrame, settings: Limit, tables: Tables) -> Any:
        return fold(events, by="card_id", state=State, step=lambda *of: [], expires=timedelta(days=1))

    def counts(events: DataFrame, settings: Limit, tables: Tables) -> DataFrame:
        grouped = events.groupBy(F.window("event_time", "1 minute"), "card_id").agg(F.max("event_time").alias("last"))
        columns = alert(reason=F.lit("n"), entity=F.col("card_id"), at=F.col("last"), window=F.col("window"))
        return grouped.select(*columns)

    for function, kind, operator in (
        (over, "rule", RuleOperator),
        (folds, "stateful", FoldOperator),
        (counts, "aggregate", AggregateOperator),
    ):
        made = built(function, kind=kind).bounded_operator(ALL, PARTITIONS)
        assert type(made) is operator


def test_a_range_is_evaluated_with_the_present_settings(built: Build) -> None:
    builder = built()
    assert _alerts(builder) == 1  # amounts are 9, 10 and 11
    builder.settings = Limit(limit=8)
    assert _alerts(builder) == 3
    assert builder.versions.settings == Limit(limit=8).digest


def _alerts(builder: QueryBuilder) -> int:
    operator = builder.bounded_operator(ALL, PARTITIONS)
    return len(operator.process(operator.frame().toArrow()).alerts)


def test_a_failed_record_is_excluded_with_the_stage_that_fails_on_it(built: Build) -> None:
    def divides(events: DataFrame, settings: Limit, tables: Tables) -> DataFrame:
        return over(events.where(F.expr("1 / (amount - 10) < 100")), settings, tables)

    def scores(events: DataFrame, settings: Limit, tables: Tables) -> DataFrame:
        return events.select(*alert(reason=F.lit("seen"), score=F.col("amount").cast("double")))

    undecodable: Any = built()
    undecodable.events.broken = {1}
    for builder, kind in (
        (undecodable, DecodeError),
        (built(divides), DetectError),
        (built(scores, mode="realtime"), EncodeError),
    ):
        builder.exclude(FailedRecord(1, 1, RuntimeError("it failed")))
        [found] = builder.events.excluded
        assert (found.position, type(found.error)) == ((1, 1), kind)


def test_only_the_requested_stages_run(built: Build) -> None:
    def fails(events: DataFrame, settings: Limit, tables: Tables) -> DataFrame:
        return over(events.where(F.raise_error(F.lit("no")).cast("boolean")), settings, tables)

    builder = built(fails)
    builder.evaluate(ALL, "decode")
    with pytest.raises(Exception, match="no"):
        builder.evaluate(ALL, "detect")
