"""Rules in Real-Time Mode: alerts at once, each once whatever ends the job, and the same as batch by batch."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge import Detector, Settings, Tables, alert
from lozenge.contracts.avro import Codec
from lozenge.contracts.detector_mode import DetectorMode
from lozenge.detector.loader import LoadedDetector
from lozenge.errors import DetectorError
from lozenge.job.commit.resume_filter import ResumeFilter
from lozenge.job.drivers.realtime import RealtimeDriver
from lozenge.job.lifecycle.outputs import LiveOutput
from lozenge.job.lifecycle.start_actions import WARM_UP_OFFSETS
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.protocol.job_spec import JobSpec
from lozenge.protocol.job_status import JobPhase
from tests.integration.harness import (
    alerts,
    committed,
    event,
    group_offsets,
    new_detector,
    running,
    send,
    wait_for,
)
from tests.streams import AUTH

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("no_short_batches")]


def over(events: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
    return events.where(F.col("amount") > 100).select(
        *alert(
            reason=F.concat(F.lit("over: "), F.col("amount").cast("string")),
            score=F.col("amount").cast("double") / 1000,
            severity=F.when(F.col("amount") > 500, "critical"),
            title=F.when(F.col("amount") > 900, "\u3000\u200b\u2800 ").when(F.col("amount") > 500, "\u200bfive"),
            values={"amount": F.col("amount"), "account": F.col("account_id")},
            labels={"country": F.col("country")},
        )
    )


def over_and_fragile(events: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
    """A merchant that is no number cannot be processed, and no alert can be written of one that is below zero."""
    number = F.col("merchant_id").cast("int")
    return events.where(number != 0).select(
        *alert(reason=F.lit("numbered"), score=F.when(number > 0, 1.0).otherwise(2.0))
    )


def over_and_slow(events: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
    """One merchant holds its task up for many readings of its position."""
    nap = F.expr("if(merchant_id = 'slow', java_method('java.lang.Thread', 'sleep', 12000L), '')")
    return events.where(F.col("amount") > 100).select(*alert(reason=F.concat_ws(" ", F.lit("over"), nap)))


def with_python(events: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
    shout = F.udf(lambda text: text.upper(), "string")
    return events.select(*alert(reason=shout("merchant_id")))


def detector(kafka: KafkaSettings, detect: Any, folder: Path, **declared: Any) -> LoadedDetector:
    fields = {"mode": "realtime", "trigger": "5s"} | declared
    return new_detector(kafka, Detector(detect, settings=Settings), folder, **fields)


def some_events(first: int, number: int) -> list[dict[str, Any]]:
    return [event(n, card=f"card_{n % 13}", amount="150.00") for n in range(first, first + number)]


def test_alerts_come_at_once_and_offsets_with_the_end_of_the_batch(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = detector(kafka, over, tmp_path)
    sent = 0

    def come_before_the_commit() -> bool:
        """Whether alerts of further events come in the batch of these, which may happen to end just then."""
        nonlocal sent
        before = group_offsets(kafka, loaded.name)
        send(kafka, some_events(sent, 200))
        sent += 200
        wait_for(lambda: len(alerts(kafka, loaded.name)) == sent, "the alerts")
        return group_offsets(kafka, loaded.name) == before

    with running(loaded, kafka, spark, tmp_path) as run:
        wait_for(
            lambda: group_offsets(kafka, loaded.name)[0][1] == CommitMetadata(1, output_ahead=True).encode(),
            "the claim",
        )
        start = sum(offset for offset, _ in group_offsets(kafka, loaded.name).values())
        wait_for(come_before_the_commit, "alerts before the commit")
        wait_for(lambda: sum(run.runner.offsets.values()) == start + sent, "the commit")
        samples = run.runner.parts.metrics.snapshot()["samples"]
    checkpoint = run.runner.parts.planner.checkpoint.id
    committed = {CommitMetadata.decode(metadata) for _, metadata in group_offsets(kafka, loaded.name).values()}
    assert {(m.generation, m.checkpoint, m.output_ahead) for m in committed if m} == {(1, checkpoint, True)}
    assert None not in committed
    assert samples["lozenge_emitted_total"] == samples["lozenge_offsets_committed_total"] == sent
    assert samples["lozenge_latency_seconds_count"] + samples["lozenge_backlog_latency_seconds_count"] == sent


def test_the_position_is_reported_long_before_its_commit(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    with running(detector(kafka, over, tmp_path, trigger="5m"), kafka, spark, tmp_path) as run:
        reporter = run.runner.parts.reporter
        send(kafka, some_events(0, 200))
        wait_for(lambda: samples(run)["lozenge_offsets_begun_total"] == 200, "what it has read")
        wait_for(lambda: reporter.status.lag == samples(run).get("lozenge_lag_offsets") == 0, "its lag")
        assert samples(run)["lozenge_offsets_committed_total"] == 0


def test_what_a_task_that_hangs_does_not_read_is_lag(kafka: KafkaSettings, spark: SparkSession, tmp_path: Path) -> None:
    with running(detector(kafka, over_and_slow, tmp_path, trigger="5m"), kafka, spark, tmp_path) as run:
        send(kafka, [*some_events(0, 13), event(100, amount="150.00", merchant_id="slow")])
        wait_for(lambda: samples(run)["lozenge_offsets_begun_total"] == 14, "that its task has it")
        send(kafka, [event(n, amount="150.00") for n in range(101, 2_000)])
        wait_for(lambda: samples(run)["lozenge_lag_offsets"] == 1_899, "that the others wait")
        wait_for(lambda: samples(run)["lozenge_lag_offsets"] == 0, "that it continues")


def samples(run: Any) -> dict[str, float]:
    samples: dict[str, float] = run.runner.parts.metrics.snapshot()["samples"]
    return samples


def test_its_records_equal_those_of_micro_batch_mode(kafka: KafkaSettings, spark: SparkSession, tmp_path: Path) -> None:
    found = []
    sent = [
        event(1, amount="150.00"),
        event(2, amount="501.50", account_id="a-2", card="card_2"),
        event(3, amount="999.99", country="ÅÄ", card="card_ü"),
    ]
    for mode in ("micro-batch", "realtime"):
        loaded = detector(kafka, over, tmp_path, mode=mode)
        with running(loaded, kafka, spark, tmp_path / mode):
            send(kafka, sent)
            wait_for(lambda name=loaded.name: len(alerts(kafka, name)) == 3, "three alerts")  # type: ignore[misc]
        records = committed(kafka, kafka.topics.detector(loaded.name).alerts)
        found.append([_as_said(record, loaded.name) for record in records])
    assert sorted(found[0], key=str) == sorted(found[1], key=str)


def _as_said(record: Any, name: str) -> dict[str, Any]:
    """All of a record but what differs with the detector's name, the moment and the position of its event."""
    value = Codec.of("alert").decode(record.value)
    assert abs(record.timestamp / 1000 - value.pop("detected_at").timestamp()) < 10
    headers = [(key, text.decode()) for key, text in record.headers]
    assert dict(headers)["ce_id"] == value.pop("alert_id")
    partition = value.pop("trigger")["partition"]
    fields = {"value": value, "key": record.key, "partition": record.partition, "of": partition}
    own = ("ce_id", "traceparent")
    fields["headers"] = [(key, text.replace(name, "NAME")) for key, text in headers if key not in own]
    assert {key for key, _ in headers} > set(own)
    return fields | {"value": value | {"detector": value["detector"].replace(name, "NAME")}}


def test_alerts_published_before_a_stop_are_not_published_again(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = detector(kafka, over, tmp_path, trigger="5m")
    before = group_offsets(kafka, loaded.name)
    for start in range(3):  # none of them gets as far as a commit
        send(kafka, some_events(100 * start, 100))
        with running(loaded, kafka, spark, tmp_path, generation=start + 1):
            wait_for(lambda many=100 * (start + 1): len(alerts(kafka, loaded.name)) >= many, "the alerts")  # type: ignore[misc]
    ids = [alert["alert_id"] for alert in alerts(kafka, loaded.name)]
    assert len(ids) == len(set(ids)) == 300
    assert {p: o for p, (o, _) in group_offsets(kafka, loaded.name).items()} == {p: o for p, (o, _) in before.items()}


def test_a_release_that_leaves_the_mode_publishes_nothing_again(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    realtime = detector(kafka, over, tmp_path, trigger="5m")
    send(kafka, some_events(0, 100))
    with running(realtime, kafka, spark, tmp_path):
        wait_for(lambda: len(alerts(kafka, realtime.name)) == 100, "the alerts")
    declared = realtime.declaration.model_copy(
        update={"mode": DetectorMode.MICRO_BATCH, "trigger": timedelta(seconds=1)}
    )
    batches = LoadedDetector(realtime.name, "2.0.0", realtime.detector, declared, tmp_path, AUTH)
    with running(batches, kafka, spark, tmp_path, generation=2) as run:
        send(kafka, some_events(100, 50))
        wait_for(lambda: len(alerts(kafka, realtime.name)) >= 150, "the alerts of both")
        send(kafka, some_events(150, 1))
        wait_for(lambda: len(alerts(kafka, realtime.name)) >= 151, "the last alert")
        output = run.runner.current.output
        assert isinstance(output, LiveOutput)
        assert output.committer._skipped == ResumeFilter()
    ids = [alert["alert_id"] for alert in alerts(kafka, realtime.name)]
    assert len(ids) == len(set(ids)) == 151


def test_an_event_that_cannot_be_processed_or_written_becomes_a_dead_letter(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = detector(kafka, over_and_fragile, tmp_path)
    with running(loaded, kafka, spark, tmp_path):
        send(kafka, [event(n, card=f"card_{n}", merchant_id="7") for n in range(20)])
        wait_for(lambda: len(alerts(kafka, loaded.name)) == 20, "the first alerts")
        send(kafka, [event(20, merchant_id="seven"), b"no avro", event(21, merchant_id="-7")])
        send(kafka, [event(n, card=f"card_{n}", merchant_id="7") for n in range(30, 50)])
        wait_for(lambda: len(committed(kafka, kafka.topics.dead_letters(loaded.name))) == 3, "the dead letters")
        wait_for(lambda: len(alerts(kafka, loaded.name)) >= 40, "the other alerts")
    dead_letters = [
        dict(dead_letter.headers) for dead_letter in committed(kafka, kafka.topics.dead_letters(loaded.name))
    ]
    assert sorted(dead_letter["__connect.errors.stage"].decode() for dead_letter in dead_letters) == [
        "decode",
        "detect",
        "encode",
    ]
    why = next(
        x["__connect.errors.exception.message"] for x in dead_letters if x["__connect.errors.stage"] == b"encode"
    )
    assert "score 2.0 does not lie between 0 and 1" in why.decode()
    ids = [alert["alert_id"] for alert in alerts(kafka, loaded.name)]
    assert len(ids) == len(set(ids)) == 40


def test_python_in_the_plan_is_refused_with_its_operator(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = detector(kafka, with_python, tmp_path)
    refused = pytest.raises(DetectorError, match=r"realtime.* cannot run ArrowEvalPython")
    with refused, running(loaded, kafka, spark, tmp_path) as run:
        run.join()


def test_the_first_batches_of_a_process_are_short_whatever_else_the_plan_holds(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = detector(kafka, over, tmp_path, trigger="8s")
    send(kafka, some_events(0, 100))
    with running(loaded, kafka, spark, tmp_path):
        wait_for(lambda: len(alerts(kafka, loaded.name)) == 100, "alerts for the next one to skip")
    with running(loaded, kafka, spark, tmp_path, generation=2, short_batches=2) as run:
        runner = run.runner
        driver: Any = runner.parts.driver

        def seconds() -> list[float]:
            return [progress.batchDuration / 1000 for progress in driver._running.query.recentProgress]

        wait_for(lambda: runner.parts.reporter.status.first_batch_at and seconds(), "a batch")
        assert min(seconds()) < 8
        wait_for(lambda: max(seconds()) >= 8, "one as long as declared")
        send(kafka, some_events(100, 100))
        wait_for(lambda: len(alerts(kafka, loaded.name)) >= 200, "the alerts of both")
        wait_for(lambda: seconds()[-1] >= 8 and sum(s >= 8 for s in seconds()) >= 2, "another one")
    ids = [alert["alert_id"] for alert in alerts(kafka, loaded.name)]
    assert len(ids) == len(set(ids)) == 200


def test_a_standby_has_run_its_query_and_published_nothing(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded, folder = detector(kafka, over, tmp_path, trigger="5m"), tmp_path / "job"
    folder.mkdir()
    send(kafka, [event(n, card=f"card_{n % 13}", amount="10.00") for n in range(13 * WARM_UP_OFFSETS)])
    send(kafka, some_events(0, 100))  # every event of the warm-up run can be processed
    JobSpec(standby=True).write(folder)
    with running(loaded, kafka, spark, tmp_path, folder=folder, short_batches=2) as run:
        report = run.runner.parts.reporter
        wait_for(lambda: report.status.phase is JobPhase.READY, "it to be ready")
        assert isinstance(run.runner.parts.driver, RealtimeDriver)
        assert not run.runner.parts.driver.batch_duration.warming_up
        assert alerts(kafka, loaded.name) == []
        JobSpec(generation=2).write(folder)
        wait_for(lambda: len(alerts(kafka, loaded.name)) >= 100, "the alerts")
        assert not report.status.finished_at
    assert len(alerts(kafka, loaded.name)) == 100
    assert report.status.finished_at
