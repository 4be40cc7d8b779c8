"""A card that is everywhere is nowhere after `lozenge erase`, and all others are where they were."""

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lozenge.archive.columns import ORDER, PLATFORM, columns_of, rows_of
from lozenge.archive.compaction import merged, to_merge
from lozenge.archive.delta_table import ArchiveTable
from lozenge.cache.entries import CacheEntry, CachePosition, Lifetimes
from lozenge.cache.redis_store import RedisStore
from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.record import Record
from lozenge.contracts.topics import MOST_LAG, platform_table, reference_list
from lozenge.kafka.direct_write import write_directly
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import configurations, configure, ensure_topics, partitions, topic_id
from lozenge.kafka.topic_reader import bounds, read
from lozenge.kafka.writers import TransactionalWriter
from lozenge.protocol.data_subject import ERASED, DataSubject
from lozenge.streams.project import STREAMS_VARIABLE
from lozenge_deploy.local.redis_server import LocalRedis
from lozenge_deploy.operations.erasure.compacted import stale
from lozenge_deploy.operations.erasure.loaded_tables import erase_loaded_tables
from lozenge_deploy.operations.erasure.plan import Plan
from lozenge_deploy.operations.erasure.receipt import Outcome
from lozenge_downstream.api import api
from lozenge_downstream.api.server import ApiServer
from tests.brokers import Broker, own_platform
from tests.deploy.command import invoke
from tests.downstream.conftest import Desk, alert_record
from tests.integration.harness import NOW, event, send, wait_for
from tests.shared.archive.test_erasure import every_byte
from tests.sinks import sink_folder
from tests.streams import AUTH, FOLDER, STREAMS

pytestmark = pytest.mark.integration

CARD, OTHER = "card_4f1c09e27ab35d68", "card_9b3e77d01c64aa52"
SUBJECT = DataSubject("card", CARD)
DETECTOR, LIST, CACHE = "erased_fold", "erased_cards", "last"
TOKEN, BUCKETS = "a token", 4
SINK = 'kind = "cache"\ntitle = "Last"\nowner = "tests"\nurl = "${LOZENGE_CACHE_URL}"\nstream = "auth"\n'
EVENTS = columns_of(AUTH.event_schema.definition)
COMPACTION_SECONDS = 180.0


@dataclass
class Place:
    """A platform in which both cards are in every place."""

    kafka: KafkaSettings
    folder: Path
    variables: dict[str, str]
    valkey: LocalRedis
    desk: Desk

    def erase(self, *options: str, code: int = 0) -> dict[str, dict[str, Any]]:
        """The lines of the receipt by place."""
        run = invoke("erase", "card", CARD, *options, "-o", "json", cwd=self.folder, **self.variables)
        assert run.returncode == code, run.stdout + run.stderr
        return {line["place"]: line for line in json.loads(run.stdout)}

    @property
    def archive(self) -> Path:
        return self.folder / "archive"

    def topic(self, name: str) -> list[tuple[bytes | None, bytes | None]]:
        """Key and value of every committed record of a topic."""
        starts = dict.fromkeys(range(partitions(self.kafka)[name]), 0)
        return [(message.key(), message.value()) for message in read(self.kafka, name, starts, settled=True)]

    def cached(self) -> bytes:
        """All that the server has."""
        with closing(self.valkey.client()) as client:
            return repr({key: client.hgetall(key) for key in client.scan_iter("*")}).encode()

    def stored(self) -> bytes:
        """The files of the notifier's store."""
        return b"".join(file.read_bytes() for file in self.folder.glob("store.db*"))


def latest(records: list[tuple[bytes | None, bytes | None]]) -> dict[bytes | None, bytes]:
    found = dict(records)
    return {key: value for key, value in found.items() if value is not None}


def rows_at(ends: dict[int, int], cards: dict[tuple[int, int], str]) -> pa.Table:
    rows = [
        {"partition": partition, "offset": offset, "timestamp": NOW, "ingested_at": NOW, "day": NOW.date()}
        | {"bucket": partition_of(cards[(partition, offset)].encode(), BUCKETS)}
        | event(offset, cards[(partition, offset)])
        for partition, end in ends.items()
        for offset in range(end)
    ]
    return rows_of(pa.Table.from_pylist(rows, schema=EVENTS), EVENTS)


def fill_table(kafka: KafkaSettings, archive: Path) -> None:
    """The events topic as a table, as a sink writes it, in three versions with rows and one with merged files."""
    topic = AUTH.events(kafka.topics)
    cards = {(m.partition() or 0, m.offset() or 0): (m.key() or b"").decode() for m in read(kafka, topic, {0: 0, 1: 0})}
    ends = {partition: end for partition, (_, end) in bounds(kafka, topic, 2).items()}
    table = ArchiveTable.open(archive / topic, topic, "events_auth", EVENTS, BUCKETS)
    before = dict[int, int]()
    for part in (3, 2, 1):
        now = {partition: end // part for partition, end in ends.items()}
        fresh = rows_at(now, cards)
        kept = [row for row in fresh.to_pylist() if row["offset"] >= before.get(row["partition"], 0)]
        table.append(rows_of(pa.Table.from_pylist(kept, schema=EVENTS), EVENTS), before, now)
        before = now
    for small in to_merge(table.files(), NOW.date() + timedelta(days=1)):
        assert table.replace(small.files, merged(table.folder, small, table.columns))


def fill_topics(kafka: KafkaSettings) -> None:
    """States of a fold whose key is the card, or a card and more, or which remember cards; and a list of cards."""
    topics = kafka.topics
    ensure_topics(kafka, [*topics.detector(DETECTOR).contracts(), reference_list(topics, LIST)])
    entry = {"clock": NOW.isoformat(), "timers": [], "state": {"seen": [CARD, OTHER], "sum": "1.5"}}
    state = topics.detector(DETECTOR).state
    keys = [[CARD], [OTHER], [CARD, "m-1"], ["device_77"]]
    writer = TransactionalWriter(kafka, DETECTOR)
    writer.fence()
    mine = [Record(state, 0, json.dumps(key).encode(), json.dumps(entry).encode()) for key in keys]
    writer.write(mine)
    listed = {"reason": f"with {CARD}", "author": "ann", "added_at": NOW.isoformat()}
    entries = [Record(reference_list(topics, LIST).name, 0, v.encode(), json.dumps(listed | {"value": v}).encode())
               for v in (CARD, OTHER)]  # fmt: skip
    assert write_directly(kafka, entries) == ""


def fill_cache(kafka: KafkaSettings, url: str) -> None:
    topic = AUTH.events(kafka.topics)
    id = topic_id(kafka, topic)
    with closing(RedisStore(url, CACHE, Lifetimes(None, timedelta(days=1)))) as store:
        for partition, (_, end) in bounds(kafka, topic, 2).items():
            cards = [card for card in (CARD, OTHER) if partition_of(card.encode(), 2) == partition]
            entries = [CacheEntry(card, json.dumps({"card_id": card}), end - 1, 1) for card in cards]
            assert store.write(partition, None, CachePosition(id, 1, end), entries)


@contextmanager
def notifier(folder: Path) -> Iterator[tuple[Desk, int]]:
    desk = Desk(f"sqlite:///{folder / 'store.db'}")
    desk.routing(route={"channels": ["ops"], "group_by": ["entity"]})
    for number, card in enumerate((CARD, CARD, OTHER)):
        desk.take(alert_record(number, entity={"type": "card", "id": card}, alert_id=f"alert-{number}"))
    with desk.store.transaction() as t:
        for row in t.outbox.pending(100):
            t.outbox.published((row.topic, row.partition), row.seq)
    with ApiServer(api(desk.store, desk.pipeline, lambda: None, TOKEN, None), "127.0.0.1:0") as serving:
        yield desk, serving.port
    desk.store.close()


@pytest.fixture
def platform(broker: Broker) -> Iterator[KafkaSettings]:
    with own_platform(broker, 2) as made:
        yield made


@pytest.fixture
def place(platform: KafkaSettings, tmp_path: Path) -> Iterator[Place]:
    shutil.copytree(FOLDER, tmp_path / "upstream" / "streams")
    sink_folder(tmp_path, CACHE, SINK)
    (tmp_path / "archive").mkdir()
    send(platform, [event(n, CARD if n % 5 == 0 else OTHER if n % 2 else f"card_{n:016x}") for n in range(300)])
    fill_table(platform, tmp_path / "archive")
    fill_topics(platform)
    with LocalRedis(tmp_path / "valkey") as valkey, notifier(tmp_path) as (desk, port):
        fill_cache(platform, valkey.url)
        variables = platform.variables | {
            STREAMS_VARIABLE: str(tmp_path / "upstream" / "streams"),
            "LOZENGE_ARCHIVE": str(tmp_path / "archive"),
            "LOZENGE_CACHE_URL": valkey.url,
            "LOZENGE_NOTIFIER_URL": f"http://127.0.0.1:{port}",
            "LOZENGE_NOTIFIER_TOKEN": TOKEN,
        }
        yield Place(platform, tmp_path, variables, valkey, desk)


def test_a_card_that_is_everywhere_is_nowhere_and_the_others_stay(place: Place) -> None:
    topics = place.kafka.topics
    state, listed = topics.detector(DETECTOR).state, reference_list(topics, LIST).name
    folder = place.archive / AUTH.events(topics)
    versions = {v: DeltaTable(folder, version=v).to_pyarrow_table() for v in range(1, DeltaTable(folder).version() + 1)}
    for content in (every_byte(folder), place.cached(), place.stored()):
        assert CARD.encode() in content

    would = place.erase()
    for where in (f"list {LIST}", f"state of {DETECTOR}", "table events_auth"):
        assert would[where]["outcome"] == "would remove"
    assert CARD.encode() in every_byte(folder)
    assert CARD.encode() in place.cached()
    assert any(CARD.encode() in (key or b"") for key in latest(place.topic(state)))

    receipt = place.erase("--yes")
    assert {line["outcome"] for line in receipt.values()} <= {"removed", "nothing found", "expires by itself"}
    for where in (f"list {LIST}", f"state of {DETECTOR}", "table events_auth", "notifier: alerts", f"cache {CACHE}"):
        assert receipt[where]["outcome"] == "removed", receipt[where]
        assert receipt[where]["records"] == would[where]["records"]
    assert receipt[f"topic {AUTH.events(topics)}"]["until"]
    for content in (every_byte(folder), place.cached(), place.stored()):
        assert CARD.encode() not in content
        assert OTHER.encode() in content

    for version, before in versions.items():
        after = DeltaTable(folder, version=version).to_pyarrow_table()
        was, now = (table.sort_by(ORDER) for table in (before, after))
        assert was.select(PLATFORM.names).equals(now.select(PLATFORM.names))
        theirs = [row for row in was.to_pylist() if row["card_id"] != CARD]
        assert [row for row in now.to_pylist() if row["card_id"] is not None] == theirs

    states = latest(place.topic(state))
    assert {*states} == {json.dumps(key).encode() for key in ([OTHER], ["device_77"])}
    assert json.loads(states[b'["device_77"]'])["state"] == {"seen": [ERASED, OTHER], "sum": "1.5"}
    entries = latest(place.topic(listed))
    assert {*entries} == {OTHER.encode()}
    assert json.loads(entries[OTHER.encode()])["reason"] == f"with {ERASED}"
    audit = [value or b"" for _, value in place.topic(topics.control.audit.name)]
    assert [json.loads(each)["action"] for each in audit[-2:]] == ["erasure begun", "erasure ended"]
    assert not any(CARD.encode() in each for each in audit)
    assert all(SUBJECT.digest.encode() in each for each in audit[-2:])

    compacted(place, state)
    again = place.erase("--yes")
    for where in (f"state of {DETECTOR}", "table events_auth", f"cache {CACHE}", "notifier"):
        assert again[where]["outcome"] == "nothing found"


def compacted(place: Place, topic: str) -> None:
    """The broker compacts the topic soon, and each run lets it begin a segment: in the end no byte has the card."""
    soon = {"min.cleanable.dirty.ratio": "0.0", "segment.ms": "100", "delete.retention.ms": "0", MOST_LAG: "100"}
    for name, value in soon.items():
        configure(place.kafka, topic, name, value)
    deadline = time.monotonic() + COMPACTION_SECONDS
    while stale(place.kafka, topic, place.kafka.partitions, SUBJECT):
        assert time.monotonic() < deadline, place.topic(topic)
        line = place.erase("--yes")[f"state of {DETECTOR}"]
        assert line["outcome"] in ("expires by itself", "nothing found")
        time.sleep(2)


def test_a_topic_without_a_longest_lag_gets_one(place: Place) -> None:
    state = place.kafka.topics.detector(DETECTOR).state
    configure(place.kafka, state, MOST_LAG, str(2**63 - 1))
    until = place.erase("--yes")[f"state of {DETECTOR}"]["until"]
    assert configurations(place.kafka, [state])[state][MOST_LAG] == "86400000"
    assert until is not None


def test_what_cannot_be_reached_or_is_not_archived_yet_is_not_done_and_a_second_run_ends_it(place: Place) -> None:
    place.valkey.kill()
    send(place.kafka, [event(1000, CARD)])
    receipt = place.erase("--yes", "--timeout", "1s", code=1)
    assert receipt[f"cache {CACHE}"]["outcome"] == "not done"
    assert "1 records of its topic are not archived yet" in receipt["table events_auth"]["what"]
    assert receipt["notifier: alerts"]["outcome"] == "removed"
    place.valkey.start()
    forgotten = dict(place.variables) | {"LOZENGE_NOTIFIER_URL": "http://127.0.0.1:1"}
    run = invoke("erase", "card", CARD, "--yes", "--timeout", "1s", cwd=place.folder, **forgotten)
    assert run.returncode == 1
    assert "asking the notifier at http://127.0.0.1:1" in run.stdout + run.stderr


def test_a_sink_that_is_declared_wrongly_hides_no_other_place(place: Place) -> None:
    sink_folder(place.folder, "wrong", 'kind = "nothing"\n')
    receipt = place.erase("--yes", code=1)
    assert (receipt["caches"]["outcome"], receipt["table events_auth"]["outcome"]) == ("not done", "removed")


def test_a_loaded_table_is_not_done_until_its_source_has_forgotten_the_card(
    platform: KafkaSettings, tmp_path: Path
) -> None:
    topic = platform_table(platform.topics, "watched")
    ensure_topics(platform, [topic])
    plan = Plan(platform, STREAMS, SUBJECT, tmp_path, tmp_path, seconds=1, dry_run=False)
    rows = [Record(topic.name, 0, json.dumps([card]).encode(), b"{}") for card in (CARD, OTHER)]
    assert write_directly(platform, rows) == ""
    [line] = erase_loaded_tables(plan)
    assert (line.place, line.outcome, line.records) == ("loaded table watched", Outcome.NOT_DONE, 1)
    assert write_directly(platform, [rows[0]._replace(value=None)]) == ""
    [line] = erase_loaded_tables(plan)
    assert (line.outcome, line.until is not None) == (Outcome.EXPIRES, True)
    [nothing] = erase_loaded_tables(replace(plan, subject=DataSubject("card", "card_of_nobody")))
    assert nothing.outcome is Outcome.NOTHING


def test_a_key_that_no_stream_has_and_a_value_that_is_no_id_are_refused(place: Place) -> None:
    run = invoke("erase", "passport", CARD, cwd=place.folder, **place.variables)
    assert (run.returncode, "the keys of streams are account, card, device" in run.stderr) == (2, True)
    run = invoke("erase", "card", "42", cwd=place.folder, **place.variables)
    assert (run.returncode, "8 characters at least" in run.stderr) == (2, True)


def test_a_topic_that_is_kept_for_ever_is_named(place: Place) -> None:
    topic = place.kafka.topics.feedback
    configure(place.kafka, topic, "retention.ms", "-1")
    try:
        assert place.erase(code=1)[f"topic {topic}"]["outcome"] == "not done"
    finally:
        configure(place.kafka, topic, "retention.ms", "604800000")
    wait_for(lambda: place.erase()[f"topic {topic}"]["outcome"] == "expires by itself", "the configuration")
