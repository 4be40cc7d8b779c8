"""Where an aggregate without its checkpoint reads from, so that its open windows are counted whole."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta

import pytest
from confluent_kafka import TopicPartition

from lozenge.job.drivers import window_replay
from lozenge.job.drivers.window_replay import rewound
from tests.shared.job.drivers.scripted import KAFKA

SPAN = timedelta(seconds=60)


class Topic:
    """Records in partitions, one each `seconds`: that at offset 0 is written at 1000."""

    def __init__(self, patch: pytest.MonkeyPatch, seconds: float = 1.0, *, ends: Mapping[int, int]) -> None:
        self._seconds, self._ends = seconds, ends
        self.asked: list[int] = []
        """Partitions of which times were asked."""
        patch.setattr(window_replay, "times_before", self._times_before)
        patch.setattr(window_replay, "reader", self._reader)

    def _times_before(self, _: object, topic: str, offsets: Mapping[int, int], *, doing: str) -> dict[int, float]:
        self.asked += offsets
        return {p: 1000 + (offset - 1) * self._seconds for p, offset in offsets.items() if offset <= self._ends[p]}

    @contextmanager
    def _reader(self, _: object, topic: str, *, doing: str) -> Iterator["Topic"]:
        yield self

    def offsets_for_times(self, asked: Sequence[TopicPartition], timeout: float) -> list[TopicPartition]:
        """The first offset at or after each moment in milliseconds; -1 where there is none."""
        return [TopicPartition(p.topic, p.partition, self._first(p.partition, p.offset / 1000)) for p in asked]

    def _first(self, partition: int, moment: float) -> int:
        offsets = range(self._ends[partition])
        return next((offset for offset in offsets if 1000 + offset * self._seconds >= moment), -1)


def test_each_partition_begins_a_span_before_its_own_last_processed_record(monkeypatch: pytest.MonkeyPatch) -> None:
    Topic(monkeypatch, ends={0: 500, 1: 500})
    assert rewound(KAFKA, "events", {0: 201, 1: 301}, SPAN) == {0: 140, 1: 240}


def test_the_span_is_of_time_and_not_of_records(monkeypatch: pytest.MonkeyPatch) -> None:
    Topic(monkeypatch, seconds=10.0, ends={0: 500})
    assert rewound(KAFKA, "events", {0: 201}, SPAN) == {0: 194}


def test_a_topic_that_begins_within_the_span_is_read_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    Topic(monkeypatch, ends={0: 500})
    assert rewound(KAFKA, "events", {0: 10}, SPAN) == {0: 0}


def test_a_partition_of_which_nothing_was_processed_is_not_asked_and_begins_where_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = Topic(monkeypatch, ends={0: 500, 1: 0})
    assert rewound(KAFKA, "events", {0: 201, 1: 0}, SPAN) == {0: 140, 1: 0}
    assert topic.asked == [0]


def test_where_no_processed_record_is_left_nothing_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    Topic(monkeypatch, ends={0: 100})
    assert rewound(KAFKA, "events", {0: 201}, SPAN) == {0: 201}


def test_no_partition_begins_after_its_committed_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(monkeypatch, ends={0: 500})
    monkeypatch.setattr(topic, "_first", lambda *_: 400)  # retention has removed what was written before
    assert rewound(KAFKA, "events", {0: 201}, SPAN) == {0: 201}


def test_without_any_processed_record_no_time_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(monkeypatch, ends={0: 0, 1: 0})
    assert rewound(KAFKA, "events", {0: 0, 1: 0}, SPAN) == {0: 0, 1: 0}
    assert topic.asked == []


def test_a_partition_whose_records_are_removed_meanwhile_begins_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(monkeypatch, ends={0: 500})
    monkeypatch.setattr(topic, "_first", lambda *_: -1)
    assert rewound(KAFKA, "events", {0: 201}, SPAN) == {0: 201}
