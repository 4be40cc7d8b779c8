from lozenge_upstream.files.rate_limit import RowRate


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_piece_has_the_rows_of_a_second_and_is_followed_by_the_rest_of_it() -> None:
    clock = Clock()
    limit = RowRate(lambda: 500, 10_000, clock)
    assert limit.size() == 500
    clock.now += 0.25
    assert limit.seconds_left(500) == 0.75


def test_without_a_rate_pieces_are_as_large_as_they_may_be_and_nothing_waits() -> None:
    limit = RowRate(lambda: 0, 10_000, Clock())
    assert limit.size() == 10_000
    assert limit.seconds_left(10_000) == 0


def test_a_rate_below_one_still_moves() -> None:
    clock = Clock()
    limit = RowRate(lambda: 0.5, 10_000, clock)
    assert limit.size() == 1
    assert limit.seconds_left(1) == 2


def test_a_new_rate_counts_within_a_wait() -> None:
    clock, rate = Clock(), [1.0]
    limit = RowRate(lambda: rate[0], 10_000, clock)
    limit.size()
    assert limit.seconds_left(1) == 1
    rate[0] = 4.0
    assert limit.seconds_left(1) == 0.25
