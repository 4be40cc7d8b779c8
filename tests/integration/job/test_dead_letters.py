"""Dead letters are replayed or dropped once, and a flood of poison opens the circuit breaker."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge import Detector, Settings, Tables, alert
from lozenge.contracts import ids
from lozenge.contracts.avro import Codec
from lozenge.contracts.dead_letters import DeadLetter, dead_letter_headers, truncated_headers
from lozenge.contracts.record import Record
from lozenge.contracts.schemas import Schema
from lozenge.contracts.topics import Topics
from lozenge.detector.loader import LoadedDetector
from lozenge.errors import Fenced, UsageError
from lozenge.job.settings import JobSettings
from lozenge.job.tools import dlq_replay as replaying
from lozenge.job.tools.dlq_replay import ReplayStep, replay
from lozenge.kafka.dead_letter_queue import Resolver, dead_letter_of, read_dead_letters, unresolved
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.writers import TransactionalWriter
from lozenge.protocol.dlq_resolutions import DROPPED, DeadLetterSelection
from lozenge.protocol.job_spec import JobSpec
from lozenge.protocol.job_status import JobStatus, read_job_status
from lozenge_deploy.operations.dlq_resend import refuse_unsendable, resend
from tests.deploy.command import lozenge
from tests.integration.harness import (
    EVENT,
    NOW,
    alerts,
    committed,
    event,
    group_offsets,
    new_detector,
    running,
    send,
    wait_for,
)
from tests.streams import AUTH, RAW_JSON, event_codec

TOPICS = Topics()

pytestmark = pytest.mark.integration


class Fragile(Settings):
    bad: str = "a b"


def fragile(events: DataFrame, settings: Fragile, tables: Tables) -> DataFrame:
    """Raises on the merchants that are `bad`, and flags all others."""
    bad = F.col("merchant_id").isin(settings.bad.split())
    number = F.when(bad, F.lit("no number")).otherwise(F.lit("1")).cast("int")
    return events.where(number > 0).select(*alert(reason=F.lit("seen")))


def fixed(bad: str = "") -> JobSettings:
    """The order of a release that raises on the merchants `bad` only."""
    return JobSettings(release="r2", settings=json.dumps({"bad": bad}))


def put(kafka: KafkaSettings, folder: Path, merchants: str, cards: str) -> LoadedDetector:
    """A rule with a dead letter of an event of each of the merchants, under the card at its position."""
    loaded = new_detector(kafka, Detector(fragile, settings=Fragile), folder)
    codec = event_codec()
    written = [
        dead(
            kafka,
            loaded.name,
            kafka.topics.events("auth"),
            f"card_{c}",
            "detect",
            place=(c % 4, n),
            value=codec.encode(poison(n, m, c)),
        )
        for n, (m, c) in enumerate(zip(merchants, map(int, cards), strict=True))
    ]
    write(kafka, written)
    return loaded


def poison(number: int, merchant: str, card: int) -> dict[str, Any]:
    """An event on which a release raises that takes this merchant for a bad one."""
    return event(number, f"card_{card}", merchant_id=merchant)


def dead(
    kafka: KafkaSettings,
    app: str,
    topic: str,
    key: str,
    stage: str,
    *,
    times: int = 1,
    place: tuple[int, int] = (3, 17),
    value: bytes = b'{"pan": 1}',
) -> Record:
    """A dead letter as `app` writes it after it has failed so often on a record at `place` of `topic`."""
    headers: list[tuple[str, bytes | None]] = [("traceparent", b"00-1-2-01")]
    for _ in range(times):
        headers = dead_letter_headers(
            headers,
            topic=topic,
            partition=place[0],
            offset=place[1],
            app=app,
            stage=stage,
            error=ValueError("missing:merchant_id"),
            failed_at=NOW,
        )
    return Record(kafka.topics.dead_letters(app), 1, key.encode(), value, headers)


def write(kafka: KafkaSettings, records: list[Record]) -> None:
    """Writes `records` in one transaction."""
    writer = TransactionalWriter(kafka, "test-dead-letters")
    writer.fence()
    writer.write(records)


def open_(kafka: KafkaSettings, loaded: LoadedDetector) -> list[DeadLetter]:
    """The unresolved dead letters, in the order of their origins."""
    return DeadLetterSelection().of(loaded.name, unresolved(kafka, loaded.name))


def emitted(kafka: KafkaSettings, loaded: LoadedDetector, card: str = "") -> list[str]:
    """The events, of a card or all, on which replays have raised alerts."""
    new = [a for a in alerts(kafka, loaded.name) if a["release"] == "r2" and card in ("", a["entity"]["id"])]
    return [a["evidence"]["event_ids"][0] for a in new]


def test_a_replay_emits_what_the_live_job_would_have_and_counts_what_fails_again(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = new_detector(kafka, Detector(fragile, settings=Fragile), tmp_path)
    send(kafka, [event(100 + n, card=f"card_{n}") for n in range(20)])
    send(kafka, [poison(0, "a", 1), poison(1, "a", 2), poison(2, "b", 3)])
    with running(loaded, kafka, spark, tmp_path, release="r1"):
        wait_for(lambda: len(alerts(kafka, loaded.name)) == 20, "the alerts")
        wait_for(lambda: len(open_(kafka, loaded)) == 3, "the dead letters")
    before = {dead_letter.key: dead_letter for dead_letter in open_(kafka, loaded)}
    assert {(x.attempt, x.stage, x.topic) for x in before.values()} == {(1, "detect", kafka.topics.events("auth"))}

    assert list(replay(loaded, fixed("b"), kafka, DeadLetterSelection(), in_order=False)) == [ReplayStep(3, 2, 1, 0, 0)]
    new = [a for a in alerts(kafka, loaded.name) if a["release"] == "r2"]
    for number, card in ((0, "card_1"), (1, "card_2")):
        [one] = [a for a in new if a["entity"]["id"] == card]
        assert one["alert_id"] == ids.alert_id(loaded.name, "card", card, f"event-{number}")
        assert (one["trigger"]["partition"], one["trigger"]["offset"]) == before[card.encode()].origin
    [again] = open_(kafka, loaded)
    first = before[b"card_3"]
    assert (again.key, again.attempt, again.value) == (first.key, 2, first.value)
    assert (again.origin, again.first_failed_at) == (first.origin, first.first_failed_at)
    Resolver(kafka, loaded.name).write(DROPPED, [again], message="known")
    assert open_(kafka, loaded) == []
    assert len(committed(kafka, kafka.topics.dead_letters(loaded.name))) == 4, "each dead letter stays in its topic"
    assert list(replay(loaded, fixed(), kafka, DeadLetterSelection(), in_order=False)) == []
    assert len(emitted(kafka, loaded)) == 2


def test_in_order_a_failure_blocks_the_later_records_of_its_key(
    kafka: KafkaSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = put(kafka, tmp_path, "abaa", "1112")
    monkeypatch.setattr(replaying, "STEP_SIZE", 3)
    steps = list(replay(loaded, fixed("b"), kafka, DeadLetterSelection(), in_order=True))
    counts = ((s.dead_letters, s.alerts, s.failed_again, s.blocked) for s in steps)
    assert [sum(count) for count in zip(*counts, strict=True)] == [3, 2, 1, 1]
    assert sorted(emitted(kafka, loaded)) == ["event-0", "event-3"]
    assert [(x.key, x.attempt) for x in open_(kafka, loaded)] == [(b"card_1", 2), (b"card_1", 1)]
    assert sum(s.alerts for s in replay(loaded, fixed(), kafka, DeadLetterSelection(), in_order=True)) == 2
    assert emitted(kafka, loaded, "card_1") == ["event-0", "event-1", "event-2"]
    assert open_(kafka, loaded) == []


def test_a_replay_that_was_cut_short_is_run_again_and_of_two_at_once_the_earlier_one_ends(
    kafka: KafkaSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = put(kafka, tmp_path, "aaaaa", "12345")
    monkeypatch.setattr(replaying, "STEP_SIZE", 2)
    first = replay(loaded, fixed(), kafka, DeadLetterSelection(), in_order=False)
    assert next(first).remaining == 3
    assert sum(s.dead_letters for s in replay(loaded, fixed(), kafka, DeadLetterSelection(), in_order=False)) == 3
    with pytest.raises(Fenced):
        next(first)
    assert sorted(emitted(kafka, loaded)) == [f"event-{n}" for n in range(5)]
    assert open_(kafka, loaded) == []


def test_records_that_are_no_events_are_dead_letters_with_the_reason_and_no_flood(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded = new_detector(kafka, Detector(fragile, settings=Fragile), tmp_path)
    frame = EVENT.encode(event(0))
    junk = {
        frame + b"0123456789": "bytes left over",
        frame[:-1]: "it is not Avro of that schema, or cut short",
        frame[:5] + b"\x80\x80\x80\x80\x08" + frame[5:]: "it is not Avro of that schema, or cut short",
        beyond_the_calendar(): "a time is after the year 9999",
        b"\0\0\0\0\x63" + frame[5:]: "schema id 99 is unknown",
        b'{"event_id": "x"}': "it has no Confluent header",
        b"": "it has no Confluent header",
    }
    send(kafka, [event(100, "card_1"), *(list(junk) * 20), event(101, "card_1")])
    with running(loaded, kafka, spark, tmp_path):
        wait_for(lambda: len(alerts(kafka, loaded.name)) == 2, "the alerts of the events among them")
        wait_for(lambda: len(open_(kafka, loaded)) == 20 * len(junk), "the dead letters")
    found = {x.value: x for x in open_(kafka, loaded)}
    assert {value: reason for value, reason in junk.items() if reason not in found[value].message} == {}
    assert {x.stage for x in found.values()} == {"decode"}


def beyond_the_calendar() -> bytes:
    """An event whose raw record was written in the year 58134, by the clock of its producer."""
    definition = AUTH.event_schema.definition
    raw = next(field for field in definition["fields"] if field["name"] == "raw")
    next(field for field in raw["type"]["fields"] if field["name"] == "timestamp")["type"] = "long"
    good = event(1)
    plain = Schema(AUTH.event_schema.id, AUTH.schema_name, 1, json.dumps(definition))
    return Codec(plain).encode(good | {"raw": good["raw"] | {"timestamp": 1_772_366_400_000_000_000}})


def test_a_flood_opens_the_circuit_until_the_spec_changes(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    loaded, folder = new_detector(kafka, Detector(fragile, settings=Fragile), tmp_path), tmp_path / "job"
    folder.mkdir()
    before = group_offsets(kafka, loaded.name)
    send(kafka, [event(n, f"card_{n % 7}", merchant_id="a") for n in range(20)])
    JobSpec(revision="one").write(folder)

    def report() -> JobStatus:
        return read_job_status(folder) or JobStatus(0, 0.0)

    with running(loaded, kafka, spark, tmp_path, folder=folder) as run:
        wait_for(lambda: report().circuit_open, "the breaker")
        assert "raises on 10 of the first 10 records" in report().circuit_open
        assert _open_breakers(run.runner) == 1.0
        assert {p: o for p, (o, _) in group_offsets(kafka, loaded.name).items()} == {
            p: o for p, (o, _) in before.items()
        }
        assert not list(read_dead_letters(kafka, loaded.name))
        turned = report().last_progress_at
        wait_for(lambda: report().last_progress_at > turned, "a sign that it is not hung")
        JobSpec(revision="two", settings={"bad": "b"}).write(folder)
        wait_for(lambda: report().revision == "two", "the change")
        assert not report().circuit_open, "else the agent, which evaluates a change by the status, would roll it back"
        wait_for(lambda: len(alerts(kafka, loaded.name)) == 20, "all alerts")
        wait_for(lambda: not report().circuit_open, "the breaker's reset")
        assert _open_breakers(run.runner) == 0.0
    assert len({a["alert_id"] for a in alerts(kafka, loaded.name)}) == 20


def _open_breakers(runner: Any) -> Any:
    return runner.parts.metrics.snapshot()["samples"]["lozenge_breaker_open"]


def test_dead_letters_of_a_stage_are_sent_to_their_origin_once(kafka: KafkaSettings) -> None:
    write(kafka, [dead(kafka, "upstream", kafka.topics.prefixed(RAW_JSON), "key_of_a_test", "normalise", times=2)])
    mine = DeadLetterSelection(key="key_of_a_test")
    assert [line.dead_letters for line in resend(kafka, "upstream", mine, "mapping fixed")] == [1]
    [raw] = [record for record in committed(kafka, kafka.topics.prefixed(RAW_JSON)) if record.key == b"key_of_a_test"]
    assert (raw.partition, raw.value) == (3, b'{"pan": 1}')
    headers = dict(raw.headers)
    assert headers["traceparent"] == b"00-1-2-01"
    assert (headers["attempt"], headers["__connect.errors.offset"]) == (b"2", b"17")
    assert "__connect.errors.exception.message" not in headers, "the next failure says its own"
    with pytest.raises(UsageError, match="none is unresolved with the key key_of_a_test"):
        list(resend(kafka, "upstream", mine, ""))


@pytest.mark.parametrize(
    ("app", "topic", "stage", "said"),
    [
        ("upstream", TOPICS.notifications, "normalise", "did not come from a topic that it reads"),
        ("upstream", "no_such_topic", "normalise", "did not come from a topic that it reads"),
        ("downstream", TOPICS.prefixed(RAW_JSON), "decode", "did not come from a topic that it reads"),
        ("downstream", TOPICS.detector("x").alerts, "deliver", "a webhook refused 1:0 in every attempt"),
    ],
)
def test_a_dead_letter_that_cannot_be_replayed_is_refused_with_the_reason(
    kafka: KafkaSettings, app: str, topic: str, stage: str, said: str
) -> None:
    dead_letter = _dead_letter(app, dead(kafka, app, kafka.topics.prefixed(topic), "key", stage))
    with pytest.raises(UsageError, match=said):
        refuse_unsendable(kafka, app, [dead_letter])


def test_a_truncated_record_is_not_replayed(kafka: KafkaSettings) -> None:
    whole = dead(kafka, "downstream", kafka.topics.detector("x").alerts, "key", "decode")
    dead_letter = _dead_letter("downstream", whole._replace(headers=truncated_headers(whole.headers, 3_000_000, 100)))
    assert (dead_letter.stage, dead_letter.origin) == ("decode", (3, 17)), "it says as much as one that is whole"
    with pytest.raises(UsageError, match="1:0 has only the beginning of a record"):
        refuse_unsendable(kafka, "downstream", [dead_letter])


def _dead_letter(app: str, record: Record) -> DeadLetter:
    """The dead letter in a record that was never written."""

    class Message:
        def __getattr__(self, name: str) -> Any:
            given = {"partition": 1, "offset": 0, "timestamp": (1, 0)} | record._asdict()
            return lambda: given[name]

    return dead_letter_of(app, Message())  # type: ignore[arg-type]


def test_the_command_lists_shows_and_drops_and_the_history_has_it(kafka: KafkaSettings, tmp_path: Path) -> None:
    name = new_detector(kafka, Detector(fragile, settings=Fragile), tmp_path).name
    write(kafka, [dead(kafka, name, kafka.topics.events("auth"), f"card_{n}", "detect", times=n) for n in (1, 2)])

    def said(*arguments: str) -> Any:
        run = lozenge(*arguments, "-o", "json", cwd=tmp_path, **kafka.variables)
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout)

    [row] = [row for row in said("dlq", "ls") if row["app"] == name]
    assert (row["unresolved"], row["reason"]) == (2, "detect: missing:merchant_id")
    rows = said("dlq", "show", name)
    assert [(row["key"], row["attempt"]) for row in rows] == [("card_1", 1), ("card_2", 2)]
    [whole] = said("dlq", "show", name, rows[1]["position"])
    assert (whole["value"], whole["resolution"], whole["from"]) == (
        {"pan": 1},
        "unresolved",
        f"{kafka.topics.events('auth')} 3:17",
    )
    assert len(said("dlq", "drop", name, "--all", "--dry-run")) == 2
    assert said("dlq", "drop", name, rows[1]["position"], "-m", "a test card") == [{"app": name, "dead_letters": 1}]
    assert [dead_letter.key for dead_letter in unresolved(kafka, name)] == [b"card_1"]
    [line] = said("history", name)
    assert (line["what"], line["detail"]) == ("dropped", "1 dead letter; a test card")
