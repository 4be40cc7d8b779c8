"""Settings are tried by `detect()` without a broker, with the words with which a running job rejects them."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge import Detector, Settings, State, Tables, alert, fold
from lozenge.contracts.topics import Topics
from lozenge.detector.loader import LoadedDetector
from lozenge.errors import DetectorError, SparkGone
from lozenge.host import tool_host
from lozenge.job.query.query_builder import QueryBuilder
from lozenge.job.tools import dry_plan
from lozenge.spark.conf import most_slots
from lozenge.spark.session import spark_session
from tests.shared.job.commit.scripted import LIVE, declared
from tests.shared.job.query.conftest import stream
from tests.streams import AUTH


class Limit(Settings):
    limit: float = 10.0


def over(events: DataFrame, settings: Limit, tables: Tables) -> DataFrame:
    if settings.limit < 0:
        raise ValueError("no limit is negative")
    return events.where(F.col("amount") > settings.limit).select(*alert(reason=F.lit("over")))


def counts(events: DataFrame, settings: Limit, tables: Tables) -> DataFrame:
    return over(events.distinct() if settings.limit > 50 else events, settings, tables)


def folds(events: DataFrame, settings: Limit, tables: Tables) -> Any:
    by = "card_id" if settings.limit < 50 else "merchant_id"
    return fold(events, by=by, state=State, step=lambda *of: [], expires=timedelta(days=1))


def loaded(function: Callable[..., Any], folder: Path, **manifest: Any) -> LoadedDetector:
    return LoadedDetector("one", "1.0.0", Detector(function, Limit), declared(**manifest), folder, AUTH)


@pytest.fixture
def query_spark() -> SparkSession:
    """The session of the process, which the integration tests share."""
    return spark_session("tests", cores=most_slots(Topics().partitions), memory_mb=1024)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("function", "kind", "good", "bad"),
    [(over, "rule", 99, -1), (counts, "rule", 50, 51), (folds, "stateful", 49, 50)],
    ids=["raises", "cannot be streamed", "loses its key"],
)
def test_settings_are_refused_with_the_words_of_the_job(
    query_spark: SparkSession, tmp_path: Path, function: Callable[..., Any], kind: str, good: float, bad: float
) -> None:
    detector = loaded(function, tmp_path, kind=kind)
    events: Any = SimpleNamespace(stream=lambda offsets, max_batch: stream(query_spark, tmp_path))
    tables: Any = SimpleNamespace(taken={}, load=lambda spark: {})
    job = QueryBuilder(detector, LIVE, Limit(), events, tables)
    assert dry_plan.check(detector, Limit(limit=good)) == ""
    with pytest.raises(DetectorError) as rejected:
        job.check(Limit(limit=bad), 2)
    with pytest.raises(DetectorError) as refused:
        dry_plan.check(detector, Limit(limit=bad))
    assert str(refused.value) == str(rejected.value).replace(LIVE.detector, detector.name)


def test_a_table_that_only_the_job_has_leaves_the_question_to_the_job(tmp_path: Path) -> None:
    detector = loaded(over, tmp_path, tables={"limits": {"path": str(tmp_path / "elsewhere.parquet")}})
    assert "table limits" in dry_plan.check(detector, Limit(limit=-1))


def test_where_no_spark_starts_the_reason_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_spark(*_: object) -> SparkSession:
        raise SparkGone("starting a Spark host: it is not ready", hint="its log is there")

    monkeypatch.setattr(tool_host, "tool_session", no_spark)
    assert dry_plan.check(loaded(over, tmp_path), Limit(limit=-1)) == "starting a Spark host: it is not ready"
