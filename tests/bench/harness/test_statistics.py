"""Percentiles are values that occurred; a ratio is taken within a round, never across."""

from tests.bench.harness.statistics import CURVE, Ratio, curve, quantile, ratio


def test_a_percentile_is_a_value_that_occurred() -> None:
    hundred = [float(n) for n in range(1, 101)]
    assert [quantile(hundred, share) for share in (0.0, 0.5, 0.99, 1.0)] == [1, 50, 99, 100]
    assert quantile([3.0], 0.99) == 3.0


def test_the_values_of_a_curve_rise() -> None:
    spread = curve([5.0, 1.0, 4.0, 2.0, 3.0])
    assert len(spread) == len(CURVE)
    assert spread == sorted(spread)
    assert (spread[0], spread[-1]) == (1.0, 5.0)


def test_a_ratio_is_of_pairs_and_holds_their_range() -> None:
    assert ratio({1: 2.0, 2: 9.0, 3: 8.0}, {1: 1.0, 2: 3.0, 3: 2.0}) == Ratio(3.0, 2.0, 4.0, 3)


def test_a_round_that_one_side_missed_makes_no_pair() -> None:
    assert ratio({1: 2.0, 2: 9.0}, {2: 3.0, 3: 1.0}) == Ratio(3.0, 3.0, 3.0, 1)
    assert ratio({1: 2.0}, {2: 3.0}) is None
