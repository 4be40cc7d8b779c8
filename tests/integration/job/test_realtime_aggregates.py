"""Aggregates in Real-Time Mode: threshold crossings at once and once, whatever ends the job, as in micro-batch mode."""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge import Detector, Settings, Tables, alert
from lozenge.contracts.avro import Codec
from lozenge.contracts.detector_mode import DetectorMode
from lozenge.detector.loader import LoadedDetector
from lozenge.detector.manifest import Manifest
from lozenge.errors import DetectorError
from lozenge.job.lifecycle.job_loop import JobLoop
from lozenge.job.lifecycle.job_parts import JobParts
from lozenge.job.query import canonical_events
from lozenge.job.query.plan_checks import check_realtime
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.protocol.job_spec import JobSpec
from lozenge.protocol.job_status import JobPhase
from lozenge.spark import kafka_source
from tests.integration.harness import (
    Crash,
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

CARDS = [f"card_{n}" for n in range(20)]
DECLARED = {"kind": "aggregate", "mode": "realtime", "trigger": "5s", "lateness": "10m", "window": "10m"}


class Bands(Settings):
    """`least` is the first band that raises an alert."""

    least: int = 3


def velocity(events: DataFrame, settings: Bands, tables: Tables) -> DataFrame:
    """Three bands. A card of more than ten in a window has a score that no alert may have."""
    uses = F.sort_array(F.collect_set("event_id"))
    groups = events.groupBy(F.window("event_time", "10 minutes"), "card_id").agg(uses.alias("uses"))
    bands = F.filter(F.array(F.lit(3), F.lit(5), F.lit(11)), lambda band: band.between(settings.least, F.size("uses")))
    return groups.withColumn("band", F.explode(bands)).select(
        *alert(
            entity=F.col("card_id"),
            window=F.col("window"),
            band=F.col("band"),
            at=F.col("window.start"),
            reason=F.concat(F.lit("at least "), F.col("band").cast("string")),
            score=F.col("band") / F.lit(10),
            evidence=F.slice("uses", 1, F.col("band")),
            values={"band": F.col("band")},
            labels={"team": F.lit("cards")},
        )
    )


def detector(kafka: KafkaSettings, folder: Path, **declared: Any) -> LoadedDetector:
    return new_detector(kafka, Detector(velocity, settings=Bands), folder, **DECLARED | declared)


def uses(first: int, each: int, cards: list[str] = CARDS) -> list[dict[str, Any]]:
    """So many events of each card, all in one window; their ids begin with the number `first`."""
    return [event(first + n, card) for n, card in enumerate(card for _ in range(each) for card in cards)]


def alerted_bands(kafka: KafkaSettings, name: str) -> Counter[tuple[str, str]]:
    """How often each band of each card was emitted."""
    return Counter((a["entity"]["id"], a["evidence"]["values"]["band"]) for a in alerts(kafka, name))


def each_once(*bands: str, cards: list[str] = CARDS) -> Counter[tuple[str, str]]:
    return Counter((card, band) for card in cards for band in bands)


def test_threshold_crossings_are_published_at_once_and_once_while_the_group_changes(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = detector(kafka, tmp_path)
    cards: list[str] = []

    def come_before_the_commit() -> bool:
        """Whether both bands of further cards come in the batch of their events, which may happen to end just then."""
        before, first = group_offsets(kafka, loaded.name), len(cards)
        further = [f"card_{first + n}" for n in range(20)]
        send(kafka, uses(8 * first, each=4, cards=further))
        wait_for(
            lambda: alerted_bands(kafka, loaded.name) == both(cards) + each_once("3", cards=further), "the first band"
        )
        _write_as_a_stranger(kafka, kafka.topics.detector(loaded.name).changelog)
        send(kafka, uses(8 * first + 80, each=4, cards=further))
        cards.extend(further)
        wait_for(lambda: alerted_bands(kafka, loaded.name) == both(cards), "the second band")
        return group_offsets(kafka, loaded.name) == before

    def both(of: list[str]) -> Counter[tuple[str, str]]:
        return each_once("3", "5", cards=of)

    with running(loaded, kafka, spark, tmp_path) as run:
        wait_for(
            lambda: group_offsets(kafka, loaded.name)[0][1] == CommitMetadata(1, output_ahead=True).encode(),
            "the claim",
        )
        start = sum(offset for offset, _ in group_offsets(kafka, loaded.name).values())
        assert any(come_before_the_commit() for _ in range(20)), "no alert came before the commit"
        sent = 8 * len(cards)
        wait_for(lambda: sum(run.runner.offsets.values()) == start + sent, "the commit")
        samples = run.runner.parts.metrics.snapshot()["samples"]
    checkpoint = run.runner.parts.planner.checkpoint.id
    committed = {CommitMetadata.decode(metadata) for _, metadata in group_offsets(kafka, loaded.name).values()}
    assert {(m.generation, m.checkpoint, m.output_ahead) for m in committed if m} == {(1, checkpoint, True)}
    assert None not in committed
    assert alerted_bands(kafka, loaded.name) == both(cards)
    assert samples["lozenge_emitted_total"] == 2 * len(cards)
    assert samples["lozenge_offsets_committed_total"] == sent


def _write_as_a_stranger(kafka: KafkaSettings, topic: str) -> None:
    """As a replaced job that runs on, cut off from the agent that stopped it: nothing may accept its writes."""
    producer = Producer(kafka.client())
    producer.produce(topic, b"not even a row", b"the token of another query", 0)
    assert producer.flush(30) == 0


def test_alerts_published_before_a_stop_are_not_published_again(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    """Its counts continue in Spark's checkpoint from the last commit, also where Spark has ended a batch after that.

    An aggregate skips them under every guarantee that the mode allows.
    """
    loaded = detector(kafka, tmp_path, guarantee="at-least-once")
    send(kafka, uses(0, each=2))
    start = sum(offset for offset, _ in group_offsets(kafka, loaded.name).values())
    with running(loaded, kafka, spark, tmp_path) as run:
        wait_for(lambda: sum(run.runner.offsets.values()) == start + 40, "the commit of two of each card")
    longer = LoadedDetector(
        loaded.name, "1.0.0", loaded.detector, _changed(loaded, trigger=timedelta(minutes=5)), tmp_path, AUTH
    )
    for generation in (2, 3):  # neither gets as far as a commit
        send(kafka, uses(100 * generation, each=2))
        with running(longer, kafka, spark, tmp_path, generation=generation) as run:
            bands = ("3",) if generation == 2 else ("3", "5")
            wait_for(lambda bands=bands: alerted_bands(kafka, loaded.name) == each_once(*bands), "the band")  # type: ignore[misc]
            assert run.runner.parts.planner.checkpoint.last_planned() >= 0
    assert sum(offset for offset, _ in group_offsets(kafka, loaded.name).values()) == start + 40
    assert alerted_bands(kafka, loaded.name) == each_once("3", "5")


def by_card(events: DataFrame) -> Any:
    return events.groupBy(F.window("event_time", "10 minutes"), "card_id")


@pytest.mark.parametrize(
    ("counted", "operator"),
    [
        (lambda events: by_card(events).agg(F.count("*")), ""),
        (lambda events: by_card(events).agg(F.max("event_id"), F.collect_set("mcc")), ""),
        (lambda events: events.groupBy(F.window("event_time", "1 hour", "5 minutes")).agg(F.sum("amount")), ""),
        (lambda events: events.groupBy(F.session_window("event_time", "1 minute"), "mcc").count(), "MergingSessions"),
        (lambda events: by_card(events.dropDuplicates(["event_id"])).count(), "StreamingDeduplicate"),
        (lambda events: by_card(events).count().select(F.udf(lambda n: n, "long")("count")), "ArrowEvalPython"),
    ],
)
def test_what_cannot_run_in_real_time_mode_is_refused_with_its_operator(
    spark: SparkSession, tmp_path: Path, counted: Any, operator: str
) -> None:
    records = spark.readStream.schema(kafka_source.RECORDS).parquet(str(tmp_path))
    stream = canonical_events.events(records, AUTH.schemas, AUTH, "card_id")
    declared = Manifest.model_validate({"owner": "tests", "title": "A test"} | DECLARED)
    frame = counted(canonical_events.watermarked([stream, stream], timedelta(minutes=10)))
    if not operator:
        check_realtime("one", declared, frame)
        return
    with pytest.raises(DetectorError, match=rf"cannot run .*{operator}"):
        check_realtime("one", declared, frame)


class DiesBeforePublishing(JobLoop):
    """As a process that is killed when Spark has ended a batch, and nothing of it is published yet."""

    def __init__(self, parts: JobParts) -> None:
        super().__init__(parts)

        def crash(ends: Mapping[int, int], committed: Mapping[int, int]) -> bool:
            if ends != committed:
                raise Crash("in between")
            return True

        publisher: Any = parts.driver._publisher  # type: ignore[attr-defined]
        publisher.poll, publisher.has_changes = lambda seconds: iter(()), crash


def test_a_batch_that_only_spark_has_ended_is_counted_again(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = detector(kafka, tmp_path)
    start = sum(offset for offset, _ in group_offsets(kafka, loaded.name).values())
    with running(loaded, kafka, spark, tmp_path) as run:
        send(kafka, uses(0, each=2))
        wait_for(lambda: sum(run.runner.offsets.values()) == start + 40, "the commit of two of each card")
        checkpoint = run.runner.parts.planner.checkpoint.id
    send(kafka, uses(100, each=2))
    with pytest.raises(Crash), running(loaded, kafka, spark, tmp_path, DiesBeforePublishing) as run:
        run.join()
    assert alerted_bands(kafka, loaded.name) == Counter()
    with running(loaded, kafka, spark, tmp_path) as run:
        wait_for(lambda: sum(run.runner.offsets.values()) == start + 80, "the commit")
        assert run.runner.parts.planner.checkpoint.id == checkpoint
    assert alerted_bands(kafka, loaded.name) == each_once("3")


def test_it_emits_what_micro_batch_mode_emits_and_may_change_to_it(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    """The same events; and then the same checkpoint in the other mode, behind a batch that was not committed."""
    emitted = []
    for mode in ("micro-batch", "realtime"):
        loaded = detector(kafka, tmp_path, mode=mode, trigger="1s" if mode == "micro-batch" else "5m")
        with running(loaded, kafka, spark, tmp_path):
            send(kafka, uses(100, each=4))
            wait_for(lambda name=loaded.name: alerted_bands(kafka, name) == each_once("3"), "the alerts")  # type: ignore[misc]
        records = committed(kafka, kafka.topics.detector(loaded.name).alerts)
        emitted.append([_as_said(record, loaded.name) for record in records])
    assert sorted(emitted[0], key=str) == sorted(emitted[1], key=str)
    other = _changed(loaded, mode=DetectorMode.MICRO_BATCH, trigger=timedelta(seconds=1))
    left = LoadedDetector(loaded.name, "2.0.0", loaded.detector, other, tmp_path, AUTH)
    with running(left, kafka, spark, tmp_path, generation=2):
        send(kafka, uses(200, each=1))
        wait_for(lambda: alerted_bands(kafka, loaded.name) == each_once("3", "5"), "the alerts of both")
    assert alerted_bands(kafka, loaded.name) == each_once("3", "5")


def _as_said(record: Any, name: str) -> dict[str, Any]:
    """All of a record but what differs with the detector's name and the moment."""
    value = Codec.of("alert").decode(record.value)
    assert abs(record.timestamp / 1000 - value.pop("detected_at").timestamp()) < 10
    headers = [(key, text.decode()) for key, text in record.headers]
    assert dict(headers)["ce_id"] == value.pop("alert_id")
    assert value.pop("detector") == name
    fields = {"value": value, "key": record.key, "partition": record.partition}
    own = ("ce_id", "traceparent")
    fields["headers"] = [(key, text.replace(name, "NAME")) for key, text in headers if key not in own]
    return fields


def test_an_event_that_cannot_be_processed_or_written_becomes_a_dead_letter_once(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = detector(kafka, tmp_path)
    start = sum(offset for offset, _ in group_offsets(kafka, loaded.name).values())
    with running(loaded, kafka, spark, tmp_path) as run:
        send(kafka, uses(0, each=3))
        wait_for(lambda: alerted_bands(kafka, loaded.name) == each_once("3"), "the first band")
        send(
            kafka, [b"no avro", *uses(100, each=14, cards=["card_busy"])]
        )  # the row of its third band comes four times
        send(kafka, uses(200, each=2))
        wait_for(lambda: sum(run.runner.offsets.values()) == start + 115, "the commit")
    dead_letters = [
        dict(dead_letter.headers) for dead_letter in committed(kafka, kafka.topics.dead_letters(loaded.name))
    ]
    assert sorted(dead_letter["__connect.errors.stage"].decode() for dead_letter in dead_letters) == [
        "decode",
        "encode",
    ]
    why = next(
        x["__connect.errors.exception.message"] for x in dead_letters if x["__connect.errors.stage"] == b"encode"
    )
    assert "1.1" in why.decode()
    assert alerted_bands(kafka, loaded.name) == each_once("3", "5", cards=[*CARDS, "card_busy"])


def test_job_specs_standby_live_and_changed_settings(kafka: KafkaSettings, spark: SparkSession, tmp_path: Path) -> None:
    loaded = detector(kafka, tmp_path, trigger="5m")
    folder = tmp_path / "job"
    folder.mkdir()
    JobSpec(revision="a", standby=True).write(folder)
    with running(loaded, kafka, spark, tmp_path, folder=folder) as run:
        report = run.runner.parts.reporter
        wait_for(lambda: report.status.phase is JobPhase.READY, "it to be ready")
        send(kafka, uses(0, each=2))
        JobSpec(revision="b", generation=2).write(folder)
        wait_for(lambda: report.status.phase is JobPhase.LIVE and report.status.revision == "b", "it to be live")
        send(kafka, uses(100, each=1))
        wait_for(lambda: alerted_bands(kafka, loaded.name) == each_once("3"), "the first band")
        JobSpec(revision="c", generation=2, settings={"least": 5}).write(folder)
        wait_for(lambda: report.status.revision == "c", "the new settings")
        send(kafka, uses(200, each=2))
        wait_for(lambda: alerted_bands(kafka, loaded.name) == each_once("3", "5"), "the second band")
    digests = Counter(a["settings_digest"] for a in alerts(kafka, loaded.name))
    assert sorted(digests.values()) == [20, 20]


def _changed(loaded: LoadedDetector, **fields: Any) -> Any:
    return loaded.declaration.model_copy(update=fields)
