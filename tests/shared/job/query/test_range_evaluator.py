"""Ranges are evaluated in chunks that cover every offset once, from one state, without the records that fail."""

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lozenge.contracts.detector_kind import DetectorKind
from lozenge.errors import DetectorError, Flood
from lozenge.job.batch_result import BatchResult, DraftAlert, FailedRecord
from lozenge.job.query import range_evaluator
from lozenge.job.query.poison_search import Ranges, no_limit
from lozenge.job.query.query_builder import QueryBuilder
from lozenge.job.query.range_evaluator import chunks, evaluate, size

Positions = set[tuple[int, int]]


class Frame:
    """Replaces Spark: the batch is the list of positions that were read."""

    def __init__(self, read: Callable[[], list[tuple[int, int]]]) -> None:
        self._read = read

    def toArrow(self) -> list[tuple[int, int]]:
        return self._read()


class Counting:
    """Replaces an operator with state: each alert is the number of records so far."""

    def __init__(self, read: Callable[[], list[tuple[int, int]]]) -> None:
        self._frame, self._count = Frame(read), 0

    def frame(self) -> Frame:
        return self._frame

    def process(self, batch: Iterable[tuple[int, int]]) -> BatchResult:
        self._count += len(list(batch))
        return BatchResult([cast(DraftAlert, self._count)])


class Builder:
    """Replaces the query: it raises on `bad` records that were not excluded."""

    def __init__(self, bad: Positions | None = None, *, alone: bool = True) -> None:
        self.bad, self.alone = bad or set(), alone
        self.events = SimpleNamespace(excluded=list[FailedRecord]())

    def bounded_operator(self, ranges: Ranges, partitions: int) -> Counting:
        return Counting(lambda: self._read(ranges))

    def evaluate(self, ranges: Ranges) -> None:
        if self.alone:
            self._read(ranges)

    def exclude(self, record: FailedRecord) -> None:
        self.events.excluded.append(record)

    def _read(self, ranges: Ranges) -> list[tuple[int, int]]:
        skipped = {record.position for record in self.events.excluded}
        read = [(p, o) for p, (start, end) in ranges.items() for o in range(start, end) if (p, o) not in skipped]
        if self.bad & set(read):
            raise ValueError("bad record")
        return read


def run(builder: Builder, ranges: Ranges, kind: DetectorKind = DetectorKind.STATEFUL, **how: Any) -> BatchResult:
    return evaluate(cast(QueryBuilder, builder), kind, ranges, 4, **how)


def counts(result: BatchResult) -> list[int]:
    return [cast(int, alert) for alert in result.alerts]


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_evaluator, "CHUNK_OFFSETS", 10)


def test_chunks_cover_every_offset_once() -> None:
    ranges = {0: (5, 12), 1: (0, 3), 2: (7, 8)}
    parts = list(chunks(ranges, 6))
    covered = [(p, o) for part in parts for p, (start, end) in part.items() for o in range(start, end)]
    assert sorted(covered) == [(p, o) for p, (start, end) in ranges.items() for o in range(start, end)]
    assert max(end - start for part in parts for start, end in part.values()) == 2
    assert list(chunks({}, 6)) == []
    assert size(ranges) == 11


def test_chunks_share_one_state() -> None:
    assert counts(run(Builder(), {0: (0, 25)})) == [10, 20, 25]


def test_an_aggregate_is_evaluated_in_one_piece() -> None:
    assert counts(run(Builder(), {0: (0, 25)}, DetectorKind.AGGREGATE)) == [25]


def test_records_that_fail_are_excluded_and_reported() -> None:
    result = run(Builder({(0, 3), (0, 17)}), {0: (0, 20)})
    assert counts(result) == [9, 18]
    assert {record.position for record in result.failed_records} == {(0, 3), (0, 17)}


def test_too_many_failures_stop_the_evaluation_unless_there_is_no_limit() -> None:
    bad = {(0, offset) for offset in range(10)}
    with pytest.raises(Flood):
        run(Builder(bad), {0: (0, 10)})
    assert len(run(Builder(bad), {0: (0, 10)}, limit=no_limit).failed_records) == 10


def test_records_that_fail_only_together_are_an_error_of_the_detector() -> None:
    with pytest.raises(DetectorError, match="they fail together, but none fails alone: bad record"):
        run(Builder({(0, 3)}, alone=False), {0: (0, 10)})
