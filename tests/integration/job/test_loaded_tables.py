"""A job takes the versions that a loader has written, and a bad source changes nothing."""

import uuid
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge import Detector, Settings, Tables, alert
from lozenge.job.lifecycle import job_watch
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import read_log
from lozenge.platform_tables.state import TableState
from lozenge.protocol.coverage import CoverageSegment
from lozenge_upstream.tables.loader import TableLoader
from tests.integration.harness import alerts, new_detector, running
from tests.integration.job.traffic import until_alert
from tests.tables import in_sqlite, limits


def limited(events: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
    known = events.join(F.broadcast(tables["limits"]), "country")
    return known.where("amount > most").select(*alert(reason=F.concat(F.lit("above "), F.col("most").cast("string"))))


def test_a_job_takes_a_loaded_version_at_a_batch_boundary_and_a_bad_source_changes_nothing(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_watch, "TABLE_POLL_SECONDS", 0.1)
    name, file = f"limits_{uuid.uuid4().hex[:8]}", tmp_path / "limits.db"
    declared = {"limits": {"table": name, "columns": "country string, most decimal(18,4)"}}
    loader = TableLoader(limits(name, source=in_sqlite(file, [("DE", 100, None)])), kafka)
    loader.begin()
    loader.look()
    loaded = new_detector(kafka, Detector(limited, settings=Settings), tmp_path, tables=declared)
    raised = partial(until_alert, kafka, loaded.name, numbers=count(), country="DE", amount="150.00")
    with running(loaded, kafka, spark, tmp_path) as run:
        raised("above 100.0000")
        in_sqlite(file, [("DE", "much", None)])
        assert loader.look().state is TableState.REFUSED
        in_sqlite(file, [("DE", 120, None), ("FR", 1, None)])
        assert loader.look().state is TableState.GOOD
        raised("above 120.0000")
        assert (run.error, run.runner.parts.reporter.status.table_alarms) == (None, [])
    found = alerts(kafka, loaded.name)
    versions = {(a["reason"], a["table_versions"]["limits"]) for a in found}
    assert len(versions) == 2, "one version for each content"
    segments = read_log(kafka, kafka.topics.detector(loaded.name).coverage, CoverageSegment)
    assert {version for _, version in versions} <= {segment.tables["limits"] for segment in segments}
    assert len(read_log(kafka, kafka.topics.dead_letters(loaded.name), dict)) == 0
