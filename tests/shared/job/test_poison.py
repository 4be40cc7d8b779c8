"""The search for the records that make a batch fail."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lozenge.errors import BrokerUnavailable, Flood
from lozenge.job.query.poison_search import MAX_POISON, Ranges, find_poison

Places = set[tuple[int, int]]


class Evaluation:
    """Fails when a range holds a bad place; counts its calls."""

    def __init__(self, bad: Places) -> None:
        self.bad, self.calls = bad, 0

    def __call__(self, ranges: Ranges) -> None:
        self.calls += 1
        if any(p in ranges and ranges[p][0] <= o < ranges[p][1] for p, o in self.bad):
            raise ValueError("bad record")


@given(st.sets(st.tuples(st.integers(0, 3), st.integers(0, 49).map(lambda n: n * 10)), max_size=MAX_POISON))
def test_exactly_the_bad_records_are_found(bad: Places) -> None:
    found = find_poison(dict.fromkeys(range(4), (0, 500)), Evaluation(bad))
    assert {(p.partition, p.offset) for p in found} == bad


def test_one_in_ten_thousand_takes_about_two_evaluations_a_halving() -> None:
    evaluation = Evaluation({(2, 6_789)})
    find_poison({2: (0, 10_000)}, evaluation)
    assert evaluation.calls <= 2 * 14 + 3


def test_a_failure_that_does_not_come_back_blames_nobody() -> None:
    assert find_poison({0: (0, 100)}, Evaluation(set())) == []


def test_code_that_fails_on_everything_is_not_the_records_fault() -> None:
    everything = {(0, offset) for offset in range(1000)}
    evaluation = Evaluation(everything)
    with pytest.raises(Flood, match=r"10 of the first 10 records looked at.*ValueError: bad record; at 0:0 0:1 0:2 "):
        find_poison({0: (0, 1000)}, evaluation)
    assert evaluation.calls < 40


def test_a_record_that_fails_only_while_something_else_is_wrong_is_not_blamed() -> None:
    evaluation = Evaluation({(0, 3)})

    def mended(ranges: Ranges) -> None:
        try:
            evaluation(ranges)
        finally:
            if ranges == {0: (3, 4)}:
                evaluation.bad = set()

    assert find_poison({0: (0, 8)}, mended) == []


def test_a_broker_or_jvm_that_goes_away_meanwhile_ends_the_search() -> None:
    evaluation = Evaluation({(0, 3)})

    def cut_off(ranges: Ranges) -> None:
        if evaluation.calls == 4:
            raise BrokerUnavailable("listing topics: no answer", hint="")
        evaluation(ranges)

    with pytest.raises(BrokerUnavailable):
        find_poison({0: (0, 8)}, cut_off)


def test_too_many_bad_records_among_good_ones_stop_the_job_too() -> None:
    with pytest.raises(Flood, match=f"{MAX_POISON + 1} of"):
        find_poison({0: (0, 10_000)}, Evaluation({(0, 50 * n) for n in range(200)}))
