"""A reference table is replaced under a running job: only by a good version, and everything names the version."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge import Detector, Settings, Tables, alert
from lozenge.job.lifecycle import job_watch
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import read_log
from lozenge.process import file_versions
from lozenge.protocol.coverage import CoverageSegment
from tests.integration.harness import alerts, event, new_detector, running, send, wait_for

HEADER = "merchant_id,label\n"


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_watch, "TABLE_POLL_SECONDS", 0.1)
    monkeypatch.setitem(file_versions.FileVersions.__init__.__kwdefaults__, "settled_seconds", 0.05)  # type: ignore[arg-type]


def labelled(events: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
    return events.join(F.broadcast(tables["labels"]), "merchant_id").select(*alert(reason=F.col("label")))


@pytest.mark.parametrize("mode", [{}, {"mode": "realtime", "trigger": "5s"}], ids=["micro-batch", "realtime"])
def test_a_bad_file_changes_nothing_and_a_good_one_is_named_by_alerts_and_coverage(
    mode: dict[str, str], kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / "labels.csv"
    file.write_text(HEADER + "m-1,one\n")
    loaded = new_detector(
        kafka,
        Detector(labelled, settings=Settings),
        tmp_path,
        tables={"labels": {"path": str(file), "columns": "merchant_id string, label string"}},
        **mode,
    )

    def reasons(first: int, expected: str) -> None:
        """Events from `first` on, until an alert has the `expected` reason: a new table takes a moment."""
        sent = [first]

        def seen() -> bool:
            send(kafka, [event(sent[0], merchant_id="m-1", amount="150.00")])
            sent[0] += 1
            return any(a["reason"] == expected for a in alerts(kafka, loaded.name))

        wait_for(seen, f"an alert with {expected}")

    with running(loaded, kafka, spark, tmp_path) as run:
        reporter = run.runner.parts.reporter
        reasons(0, "one")
        file.write_text(HEADER + '"m-1,')
        wait_for(lambda: reporter.status.table_alarms, "the alarm")
        [alarm] = reporter.status.table_alarms
        assert f"table labels: {file} is refused: labels.csv line 2: unexpected end of data" in alarm
        before = len(alerts(kafka, loaded.name))
        send(kafka, [event(n, merchant_id="m-1", amount="150.00") for n in range(1_000, 1_003)])
        wait_for(lambda: len(alerts(kafka, loaded.name)) >= before + 3, "alerts by the last good version")
        file.write_text("label,merchant_id\ntwo,m-1\n")
        reasons(2_000, "two")
        assert reporter.status.table_alarms == []
        assert run.error is None
    found = alerts(kafka, loaded.name)
    version_of = {a["reason"]: a["table_versions"] for a in found}
    assert len({(a["reason"], a["table_versions"]["labels"]) for a in found}) == 2, "one version for each content"
    segments = read_log(kafka, kafka.topics.detector(loaded.name).coverage, CoverageSegment)
    assert [s.tables for s in segments if s.since != {}][-1] == version_of["two"] == reporter.status.tables
    assert version_of["one"] in [s.tables for s in segments]
    assert len(read_log(kafka, kafka.topics.dead_letters(loaded.name), dict)) == 0
