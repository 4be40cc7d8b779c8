"""Which queries an instance runs, from where on: by its mode, its lag and what has ended."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lozenge_upstream.settings import Mode
from lozenge_upstream.streaming.partition_worker import CAUGHT_UP_OFFSETS, PartitionWorker
from lozenge_upstream.streaming.query_errors import UnreadableTimestamp

ASSIGNED = {"AUTH-JSON": [0, 1]}


class Queries:
    """Notes where each query starts. It is the position too: each look at its `lags` takes one, the last one stays."""

    def __init__(self, *lags: int) -> None:
        self.started: list[tuple[str, int]] = []
        self.waiting_lag = 0
        self._lags, self._reads = list(lags), 0

    def read(self, assigned: Any) -> int:
        assert assigned is ASSIGNED
        self._reads += 1
        return self._reads

    def lag(self) -> int:
        return self._lags.pop(0) if len(self._lags) > 1 else self._lags[0]

    def micro_batches(self, start: int, sink: Any, position: Any, progress: Any, ended: Callable[[], bool]) -> None:
        self.started.append(("micro-batch", start))
        while not ended():
            pass

    def realtime(self, start: int, sink: Any, position: Any, progress: Any, ended: Callable[[], bool]) -> None:
        self.started.append(("realtime", start))


def run(queries: Any, mode: Mode, ended: Iterator[bool]) -> list[tuple[str, int]]:
    sink: Any = None
    progress: Any = None
    PartitionWorker(queries, mode, sink, queries).run(ASSIGNED, progress, ended=lambda: next(ended))
    started: list[tuple[str, int]] = queries.started
    return started


def test_micro_batches_run_until_the_end_at_any_lag() -> None:
    assert run(Queries(0), "micro-batch", iter([False, True])) == [("micro-batch", 1)]


@pytest.mark.parametrize("lag", [0, CAUGHT_UP_OFFSETS])
def test_a_small_lag_is_processed_in_real_time_mode(lag: int) -> None:
    assert run(Queries(lag), "realtime", iter([False])) == [("realtime", 1)]


def test_a_large_lag_is_processed_in_micro_batches_first() -> None:
    lags = CAUGHT_UP_OFFSETS + 1, CAUGHT_UP_OFFSETS + 1, CAUGHT_UP_OFFSETS
    found = run(Queries(*lags), "realtime", iter([False] * 3))
    assert found == [("micro-batch", 1), ("realtime", 2)], "the second query starts at the offsets of then"


def test_nothing_starts_after_the_end() -> None:
    assert run(Queries(0), "realtime", iter([True])) == []
    assert run(Queries(CAUGHT_UP_OFFSETS + 1), "realtime", iter([True, True])) == [("micro-batch", 1)]


class Unreadable(Queries):
    """A record stops its queries until Python has read `times` batches."""

    def __init__(self, times: int, *, there: bool = True) -> None:
        super().__init__(0)
        self._times, self._there = times, there

    def micro_batches(self, start: int, sink: Any, position: Any, progress: Any, ended: Callable[[], bool]) -> None:
        self.started.append(("micro-batch", start))
        if self._times:
            raise UnreadableTimestamp("normalising: a raw record has a Kafka timestamp that Spark cannot read")

    def without_source(self, start: int, sink: Any, position: Any, progress: Any) -> bool:
        self.started.append(("without source", start))
        self._times -= 1
        return self._there


def test_python_reads_what_spark_cannot_and_the_query_starts_again() -> None:
    read = [("micro-batch", 1), ("without source", 2), ("micro-batch", 3), ("without source", 4), ("micro-batch", 5)]
    assert run(Unreadable(2), "micro-batch", iter([False, False])) == read


def test_without_any_record_the_error_stays() -> None:
    with pytest.raises(UnreadableTimestamp):
        run(Unreadable(1, there=False), "micro-batch", iter([False]))
    with pytest.raises(UnreadableTimestamp):
        run(Unreadable(1), "micro-batch", iter([True]))
