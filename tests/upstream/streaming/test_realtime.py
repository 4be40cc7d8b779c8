"""In Real-Time Mode each batch that has ended moves the group, with the mark that records after it may be written."""

from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.spark.checkpoint import Offsets
from lozenge_upstream.streaming.realtime import Batches

BEGAN = "2026-03-01T12:00:00.000Z"


class Parts:
    """Everything that `Batches` works with, in one object, which notes the calls in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.new: list[Any] = []

    def take(self) -> Iterator[Any]:
        taken, self.new = self.new, []
        yield from taken

    def ended(self, query: Any) -> None:
        assert query is self
        self.calls.append(("ended",))

    def distance_to(self, ends: Offsets) -> int:
        return sum(end for partitions in ends.values() for end in partitions.values())

    def not_yet_counted(self, offsets: int) -> int:
        return offsets - 2

    def started(self, offsets: int) -> None:
        self.calls.append(("started", offsets))

    def move(self, ends: Offsets, metadata: CommitMetadata) -> None:
        self.calls.append(("move", ends, metadata))

    def advance(self, ends: Offsets) -> None:
        self.calls.append(("advance", ends))

    def committed(self, batch: int, offsets: int, seconds: float) -> None:
        self.calls.append(("committed", batch, offsets, seconds))

    def lag(self) -> int:
        return 11

    def report(self, query: Any, lag: int) -> None:
        self.calls.append(("report", lag))


def batch(number: int, end: int, *, with_rows: bool = True) -> SimpleNamespace:
    source = SimpleNamespace(endOffset='{"AUTH-JSON": {"0": %d}}' % end)  # noqa: UP031
    metrics = {"outputs": object()} if with_rows else {}
    return SimpleNamespace(
        batchId=number, timestamp=BEGAN, batchDuration=2_000, observedMetrics=metrics, sources=[source]
    )


@pytest.fixture
def parts() -> Parts:
    return Parts()


@pytest.fixture
def batches(parts: Any) -> Batches:
    return Batches(parts, parts, parts, parts, parts, parts, parts)


def test_a_batch_that_has_ended_is_committed_once_with_the_mark_of_its_begin(parts: Parts, batches: Batches) -> None:
    parts.new = [batch(4, 7)]
    batches.commit()
    batches.commit()
    ends = {"AUTH-JSON": {"0": 7}}
    mark = CommitMetadata(output_ahead=True, ahead_since=datetime(2026, 3, 1, 12, tzinfo=UTC))
    assert parts.calls == [
        ("ended",),
        ("started", 5),
        ("move", ends, mark),
        ("advance", ends),
        ("committed", 4, 7, 2.0),
        ("report", 11),
    ]


def test_a_trigger_without_a_batch_moves_nothing(parts: Parts, batches: Batches) -> None:
    parts.new = [batch(4, 7, with_rows=False)]
    batches.commit()
    assert parts.calls == [("ended",)]


def test_batches_are_committed_in_their_order(parts: Parts, batches: Batches) -> None:
    parts.new = [batch(4, 7), batch(5, 9)]
    batches.commit()
    assert [call[1] for call in parts.calls if call[0] == "committed"] == [4, 5]
