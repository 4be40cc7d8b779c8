"""Before a query reads, it is known what was written ahead; before it writes ahead, the group says so."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from lozenge.kafka.settings import KafkaSettings
from lozenge_upstream.settings import UpstreamSettings
from lozenge_upstream.streaming import micro_batch, realtime
from lozenge_upstream.streaming import queries as module
from lozenge_upstream.streaming.queries import Queries
from tests.streams import output

KAFKA = KafkaSettings(bootstrap="kafka:9092")
START = {"AUTH-JSON": {"0": 7}}
UNTIL = {("AUTH-JSON", 0): 9}
SINCE = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What the queries have done, in order; Spark does nothing."""
    noted: list[tuple[Any, ...]] = []

    def recovery_read(spark: Any, kafka: Any, since: Any, target: Any) -> Any:
        noted.append(("recovery read", since, target.copies))
        return SimpleNamespace(until=UNTIL)

    def stream(*arguments: Any, bounded: bool) -> Any:
        noted.append(("stream", arguments[5], arguments[7].until, bounded))
        return "rows"

    monkeypatch.setattr(module, "recovery_read", recovery_read)
    monkeypatch.setattr(module, "stream", stream)
    monkeypatch.setattr(module, "counted", lambda rows, events, skips, *, one_by_one: f"{rows} counted")
    monkeypatch.setattr(module, "SinkProducer", lambda spark, name, options: (name, options["kafka.linger.ms"]))
    monkeypatch.setattr(micro_batch, "run", lambda *run, **options: noted.append(("run", *run, options)))
    monkeypatch.setattr(realtime, "run", lambda *run, **options: noted.append(("run", *run, options)))
    return noted


@pytest.fixture
def queries() -> Queries:
    spark: Any = None
    length: Any = "length"
    settings = UpstreamSettings(trigger_seconds=3, stop_seconds=4, commit_seconds=50)
    return Queries(spark, KAFKA, settings, output(KAFKA, "terminal"), [], {KAFKA.topics.events("auth"): 6}, length)


def sink(calls: list[tuple[Any, ...]]) -> Any:
    return SimpleNamespace(move=lambda ends, metadata: calls.append(("move", ends, metadata.output_ahead)))


def position(since: datetime | None) -> Any:
    return SimpleNamespace(written_since=since, written_until={})


def ended() -> bool:
    return False


def test_micro_batches_read_the_output_first_and_know_how_far_the_output_is_ahead(
    calls: list[tuple[Any, ...]], queries: Queries
) -> None:
    at, writer, progress = position(SINCE), sink(calls), object()
    queries.micro_batches(START, writer, at, progress, ended)  # type: ignore[arg-type]
    options = {"name": "upstream", "tasks": 6, "trigger_seconds": 3, "stop_seconds": 4, "ended": ended}
    assert calls == [
        ("recovery read", SINCE, ("terminal",)),
        ("stream", START, UNTIL, True),
        ("run", "rows counted", writer, at, progress, options),
    ]
    assert at.written_until == UNTIL


@pytest.mark.parametrize(("since", "marks"), [(None, [("move", START, True)]), (SINCE, [])], ids=["first", "again"])
def test_real_time_mode_marks_the_group_before_it_writes_ahead(
    calls: list[tuple[Any, ...]], queries: Queries, since: datetime | None, marks: list[tuple[Any, ...]]
) -> None:
    at, writer, progress = position(since), sink(calls), object()
    queries.realtime(START, writer, at, progress, ended)  # type: ignore[arg-type]
    options = {
        "name": "upstream",
        "producer": ("upstream-realtime", "0"),
        "length": "length",
        "commit_seconds": 50,
        "ended": ended,
    }
    assert calls == [
        ("recovery read", since, ("terminal",)),
        ("stream", START, UNTIL, False),
        *marks,
        ("run", "rows counted", writer, at, progress, options),
    ]


def test_the_next_records_of_each_partition_are_bounded_and_the_offsets_are_those_after_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_OFFSETS", 3)
    monkeypatch.setattr(module, "frame_of", lambda spark, messages: [message.offset() for message in messages])
    there = {0: [10, 11, 14, 15], 1: []}

    def read(_: Any, topic: str, starts: dict[int, int]) -> Any:
        [(partition, begin)] = starts.items()
        yield from (SimpleNamespace(offset=lambda n=n: n) for n in there[partition] if n >= begin)

    monkeypatch.setattr(module, "read", read)
    spark: Any = None
    start = {"A": {"0": 10, "1": 4}, "B": {"0": 14}, "C": {"1": 0}}
    found: Any = module.next_records(spark, KAFKA, start)
    assert found == ({"A": [10, 11], "B": [14, 15]}, {"A": {"0": 12}, "B": {"0": 16}})
