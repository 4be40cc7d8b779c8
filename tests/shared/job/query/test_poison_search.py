"""The search for the records that make a batch fail."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lozenge.errors import BrokerUnavailable, Flood
from lozenge.job.query.poison_search import MAX_FAILURES, Ranges, find_poison

Positions = set[tuple[int, int]]


class Evaluation:
    """Fails when a range holds a bad record; counts its calls."""

    def __init__(self, bad: Positions) -> None:
        self.bad, self.calls = bad, 0

    def __call__(self, ranges: Ranges) -> None:
        self.calls += 1
        if any(p in ranges and ranges[p][0] <= o < ranges[p][1] for p, o in self.bad):
            raise ValueError("bad record")


@settings(deadline=None)
@given(st.sets(st.tuples(st.integers(0, 3), st.integers(0, 49).map(lambda n: n * 10)), max_size=MAX_FAILURES))
def test_the_search_finds_exactly_the_bad_records(bad: Positions) -> None:
    found = find_poison(dict.fromkeys(range(4), (0, 500)), Evaluation(bad))
    assert {(p.partition, p.offset) for p in found} == bad


def test_one_bad_record_of_ten_thousand_costs_two_evaluations_per_halving() -> None:
    evaluation = Evaluation({(2, 6_789)})
    find_poison({2: (0, 10_000)}, evaluation)
    assert evaluation.calls <= 2 * 14 + 3


def test_a_failure_that_does_not_occur_again_has_no_bad_record() -> None:
    assert find_poison({0: (0, 100)}, Evaluation(set())) == []


def test_code_that_fails_on_every_record_stops_the_search_early() -> None:
    everything = {(0, offset) for offset in range(1000)}
    evaluation = Evaluation(everything)
    with pytest.raises(Flood, match=r"10 of the first 10 records, .*ValueError: bad record; at 0:0 0:1 0:2 "):
        find_poison({0: (0, 1000)}, evaluation)
    assert evaluation.calls < 40


def test_a_record_that_fails_once_and_then_passes_is_not_bad() -> None:
    evaluation = Evaluation({(0, 3)})

    def failing_once(ranges: Ranges) -> None:
        try:
            evaluation(ranges)
        finally:
            if ranges == {0: (3, 4)}:
                evaluation.bad = set()

    assert find_poison({0: (0, 8)}, failing_once) == []


def test_an_unreachable_broker_ends_the_search() -> None:
    evaluation = Evaluation({(0, 3)})

    def disconnected(ranges: Ranges) -> None:
        if evaluation.calls == 4:
            raise BrokerUnavailable("listing topics: no answer", hint="")
        evaluation(ranges)

    with pytest.raises(BrokerUnavailable):
        find_poison({0: (0, 8)}, disconnected)


def test_too_many_bad_records_among_good_ones_stop_the_search() -> None:
    with pytest.raises(Flood, match=f"{MAX_FAILURES + 1} of"):
        find_poison({0: (0, 10_000)}, Evaluation({(0, 50 * n) for n in range(200)}))
