"""A job reads a list as whole versions, each of which can be read again as it was."""

import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from lozenge.contracts.topics import reference_list
from lozenge.detector.tables.declared_table import Table
from lozenge.detector.tables.reference_tables import ReferenceTables
from lozenge.errors import DetectorError
from lozenge.job.query.topic_versions import FollowedTopic, PresentTopic, RecordedTopic, recorded_topics
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.protocol.content_version import changed_of
from lozenge.protocol.list_entries import ListEntry, version
from tests.integration.harness import wait_for

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def name(kafka: KafkaSettings) -> str:
    name = f"list_{uuid.uuid4().hex[:8]}"
    ensure_topics(kafka, [reference_list(kafka.topics, name)])
    return name


@pytest.fixture
def followed(kafka: KafkaSettings, name: str, tmp_path: Path) -> Iterator[FollowedTopic]:
    found = FollowedTopic(kafka, Table(list=name), tmp_path / "followed")
    found.poll()
    yield found
    found.close()


def entry(value: str, reason: str = "stolen") -> ListEntry:
    return ListEntry(value, reason, "ann", NOW)


def put(kafka: KafkaSettings, name: str, *entries: ListEntry | str | bytes) -> None:
    """Entries, texts of values that are removed, or any bytes, all of them in one transaction."""
    producer = Producer(kafka.client(transactional_id=f"put-{name}"))
    producer.init_transactions(30)
    producer.begin_transaction()
    for each in entries:
        write(kafka, producer, name, each)
    producer.commit_transaction(30)


def write(kafka: KafkaSettings, producer: Producer, name: str, each: ListEntry | str | bytes) -> None:
    topic = reference_list(kafka.topics, name).name
    match each:
        case ListEntry():
            producer.produce(topic, each.encoded(), each.value.encode(), 0)
        case str():
            producer.produce(topic, None, each.encode(), 0)
        case _:
            producer.produce(topic, each, b"junk", 0)


def values(table: FollowedTopic | PresentTopic | RecordedTopic) -> dict[str, str]:
    """Reasons by value, as a query reads them."""
    assert table.in_force is not None
    rows = pq.read_table(table.path(table.in_force.digest)).to_pylist()
    assert len(rows) == table.in_force.entries
    return {row["value"]: row["reason"] for row in rows}


def become(table: FollowedTopic, expected: dict[str, str]) -> str:
    def there() -> bool:
        table.poll()
        return values(table) == expected

    wait_for(there, f"the entries {expected}")
    assert table.in_force is not None
    return table.in_force.digest


def test_a_list_is_followed_and_junk_in_it_changes_nothing(
    kafka: KafkaSettings, name: str, followed: FollowedTopic
) -> None:
    empty = become(followed, {})
    put(kafka, name, entry("a"), entry("b"))
    both = become(followed, {"a": "stolen", "b": "stolen"})
    put(kafka, name, b"{", b"[]", b"\xff")
    put(kafka, name, entry("a", "lost"), "b")
    changed = become(followed, {"a": "lost"})
    assert len({empty, both, changed}) == 3
    assert changed_of(empty) == 0 < changed_of(both) < changed_of(changed)
    restarted = PresentTopic(kafka, Table(list=name), followed.path("x").parent)
    restarted.poll()
    assert restarted.in_force == followed.in_force, "a version is the same for every reader"


def test_a_transaction_comes_into_force_as_a_whole(kafka: KafkaSettings, name: str, followed: FollowedTopic) -> None:
    put(kafka, name, entry("old"))
    before = become(followed, {"old": "stolen"})
    producer = Producer(kafka.client(transactional_id=f"half-{name}"))
    producer.init_transactions(30)
    producer.begin_transaction()
    many = {f"card_{n}": "stolen" for n in range(2000)}
    for value in many:
        write(kafka, producer, name, entry(value))
    write(kafka, producer, name, "old")
    producer.flush(30)
    followed.poll()
    assert followed.in_force is not None
    assert followed.in_force.digest == before
    producer.commit_transaction(30)
    seen = set[int]()

    def whole() -> bool:
        followed.poll()
        assert followed.in_force is not None
        seen.add(followed.in_force.entries)
        return followed.in_force.digest != before

    wait_for(whole, "the transaction")
    assert seen <= {1, 2000}
    assert values(followed) == many


def test_a_list_that_changes_all_the_time_has_a_first_version(kafka: KafkaSettings, name: str, tmp_path: Path) -> None:
    ended = threading.Event()

    def change_it() -> None:
        producer = Producer(kafka.client())
        for number in count():
            write(kafka, producer, name, entry(f"card_{number % 50}", f"change {number}"))
            producer.poll(0)
            if ended.wait(0.001):
                break
        producer.flush(30)

    with ThreadPoolExecutor(1) as thread:
        changing = thread.submit(change_it)
        try:
            for number in range(2):
                tables = ReferenceTables(
                    {"blocked": Table(list=name)}, tmp_path, tmp_path / str(number), partial(FollowedTopic, kafka)
                )
                assert tables.take()["blocked"]
                tables.close()
        finally:
            ended.set()
        changing.result(60)


def test_every_version_can_be_read_again(
    kafka: KafkaSettings, name: str, followed: FollowedTopic, tmp_path: Path
) -> None:
    present = dict[str, str]()
    history = {become(followed, present): present}
    for change in (entry("a"), entry("b"), "a", entry("b", "lost"), "b", entry("a", "again")):
        put(kafka, name, change)
        if isinstance(change, ListEntry):
            present = present | {change.value: change.reason}
        else:
            present = {value: reason for value, reason in present.items() if value != change}
        history[become(followed, present)] = present
    assert len(history) == 7
    for recorded, expected in history.items():
        table = RecordedTopic(kafka, Table(list=name), tmp_path / recorded, recorded)
        table.poll()
        assert (table.refused, values(table)) == ((), expected)


def test_a_version_that_the_topic_has_forgotten_is_refused_by_name(
    kafka: KafkaSettings, name: str, followed: FollowedTopic, tmp_path: Path
) -> None:
    put(kafka, name, entry("a"), entry("b"))
    recorded = version(2, [entry("a"), entry("b", "what was compacted since")])
    assert changed_of(become(followed, {"a": "stolen", "b": "stolen"})) == changed_of(recorded)
    tables = {"blocked": Table(list=name)}
    reading = ReferenceTables(tables, tmp_path, topics=recorded_topics(kafka, {f"list {name}": recorded}))
    with pytest.raises(DetectorError, match=rf"table blocked: list {name} is refused: its version {recorded} cannot"):
        reading.take()
    now = ReferenceTables(tables, tmp_path, topics=recorded_topics(kafka, {}))
    assert now.take()["blocked"] != recorded


def test_a_list_that_nobody_has_created_is_named_with_the_command_that_does(
    kafka: KafkaSettings, tmp_path: Path
) -> None:
    tables = ReferenceTables({"blocked": Table(list="nowhere")}, tmp_path, topics=partial(FollowedTopic, kafka))
    with pytest.raises(DetectorError, match=r"list nowhere is refused: there is no topic .*`lozenge list add nowhere"):
        tables.take()
    ensure_topics(kafka, [reference_list(kafka.topics, "nowhere")])
    assert tables.take()["blocked"].startswith("0-")
    tables.close()
