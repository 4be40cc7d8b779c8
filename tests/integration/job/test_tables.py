"""A reference table is replaced under a running job: only by a good version, and everything names the version."""

import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge import Alert, Detector, Fold, Settings, State, Tables, alert, fold, listed
from lozenge.contracts.record import Record
from lozenge.contracts.topics import reference_list
from lozenge.detector.tables.reference_tables import ReferenceTables
from lozenge.job.lifecycle import job_watch
from lozenge.job.query.topic_versions import PresentTopic
from lozenge.job.settings import JobSettings
from lozenge.job.tools.backtest import BacktestResult, backtest
from lozenge.job.tools.dlq_replay import replay
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics, topic_id
from lozenge.kafka.topic_reader import read_log
from lozenge.process import file_versions
from lozenge.protocol.coverage import CoverageSegment
from lozenge.protocol.dlq_resolutions import DeadLetterSelection
from lozenge_deploy.operations.lists import changes, edit
from tests.deploy.operations.lists.test_changes import entries
from tests.integration.harness import EVENT, alerts, event, new_detector, running, send, wait_for
from tests.integration.job.test_dead_letters import dead, write
from tests.integration.job.traffic import until_alert

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
        until_alert(kafka, loaded.name, expected, count(first), merchant_id="m-1", amount="150.00")

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


class Count(State):
    n: int = 0


def step(state: Count, event: Any, settings: Settings) -> Iterator[Alert]:
    state.n += 1
    if event.why is not None:
        yield Alert(reason=f"{event.why} {state.n}")


def listed_cards(events: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
    known = listed(events, tables["blocked"], "card_id", into="why")
    return known.where("why is not null").select(*alert(reason=F.col("why")))


def blocked(events: DataFrame, settings: Settings, tables: Tables) -> Fold[Count]:
    known = listed(events, tables["blocked"], "card_id", into="why")
    return fold(known, by="card_id", state=Count, step=step, expires=timedelta(days=1))


def test_a_fold_finds_what_was_listed_when_it_processed_an_event_and_so_does_its_backtest(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = new_detector(
        kafka,
        Detector(blocked, settings=Settings),
        tmp_path,
        kind="stateful",
        tables={"blocked": {"list": f"cards_{uuid.uuid4().hex[:8]}"}},
    )
    name, card = loaded.declaration.tables["blocked"].list, f"{loaded.name}_card"
    ensure_topics(kafka, [reference_list(kafka.topics, name)])
    began, sent = time.time(), [0]

    def list_(reason: str | None) -> None:
        """Makes the card listed for this reason, or not listed; and sends events until the job does so."""
        wanted = entries(card, reason=reason) if reason else {}
        edit.edit(kafka, name, lambda present: changes.additions(name, present, wanted, replace=True))

        def seen() -> bool:
            before = len(alerts(kafka, loaded.name))
            send(kafka, [event(sent[0] + n, card=card) for n in range(3)])
            sent[0] += 3
            wait_for(lambda: reporter.status.records >= sent[0], "the batch")
            new = [a["reason"].split()[0] for a in alerts(kafka, loaded.name)[before:]]
            return new == ([reason] * 3 if reason else [])

        wait_for(seen, f"only alerts with {reason}")

    with running(loaded, kafka, spark, tmp_path) as run:
        reporter = run.runner.parts.reporter
        query = reporter.status.pid
        for reason in ("stolen", "lost", None, "stolen"):
            list_(reason)
        edit.edit(kafka, name, lambda present: changes.removals(name, present, [card]))
        assert (reporter.status.pid, run.error) == (query, None)
    live = alerts(kafka, loaded.name)
    versions = {a["table_versions"]["blocked"] for a in live}
    assert len(versions) == 3, "one for each content with alerts"
    segments = read_log(kafka, kafka.topics.detector(loaded.name).coverage, CoverageSegment)
    assert versions < {segment.tables["blocked"] for segment in segments}

    found: BacktestResult = backtest(loaded, JobSettings(), kafka, timedelta(seconds=time.time() - began + 1))
    mine = [a for a in (*found.new, *found.lost) if a.entity == card]
    assert (found.same, mine, found.notes) == (len(live), [], []), "though the card is not listed any more"


def test_the_replay_of_a_dead_letter_finds_what_was_listed_when_its_event_failed(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    name = f"cards_{uuid.uuid4().hex[:8]}"
    tables = {"blocked": {"list": name}}
    loaded = new_detector(kafka, Detector(listed_cards, settings=Settings), tmp_path, tables=tables)
    card = f"{loaded.name}_card"

    def list_(reason: str) -> None:
        edit.edit(
            kafka, name, lambda present: changes.additions(name, present, entries(card, reason=reason)), create=True
        )

    def failed(number: int, offset: int) -> Record:
        """The dead letter of an event at this offset of partition 3."""
        value = EVENT.encode(event(number, card=card))
        return dead(kafka, loaded.name, kafka.topics.events("auth"), card, "detect", place=(3, offset), value=value)

    def processed(since: int, tables: dict[str, str]) -> Record:
        """What the live job writes when it has taken other tables."""
        input_id, before = topic_id(kafka, kafka.topics.events("auth")), {3: since} if since else {}
        segment = CoverageSegment("reconfigured", "r1", "d", 1, before, {3: since}, input_id=input_id, tables=tables)
        return segment.record(kafka.topics.detector(loaded.name).coverage)

    list_("stolen")
    then = ReferenceTables(loaded.declaration.tables, tmp_path, topics=partial(PresentTopic, kafka)).take()
    list_("lost")
    now = ReferenceTables(loaded.declaration.tables, tmp_path, topics=partial(PresentTopic, kafka)).take()
    write(kafka, [processed(0, then), processed(100, now), failed(1, 50), failed(2, 150), failed(3, 160)])
    list_("found again")
    steps = [*replay(loaded, JobSettings(release="r2"), kafka, DeadLetterSelection(), in_order=False)]
    assert [(step.dead_letters, step.remaining) for step in steps] == [(1, 2), (2, 0)]
    found = {a["evidence"]["event_ids"][0]: (a["reason"], a["table_versions"]) for a in alerts(kafka, loaded.name)}
    assert (found["event-1"], found["event-3"]) == (("stolen", then), ("lost", now))
