"""The size of a batch follows what the driver can hold."""

from lozenge.job.query.batch_limit import GROWS_AFTER, BatchLimit


def test_the_batch_limit_halves_down_to_one_offset() -> None:
    limit = BatchLimit(10)
    assert [limit.shrink() for _ in range(4)] == [True, True, True, False]
    assert limit.value == 1


def test_the_batch_limit_doubles_back_to_the_declared_one_after_enough_good_batches() -> None:
    limit = BatchLimit(10)
    limit.shrink()
    for _ in range(GROWS_AFTER - 1):
        limit.succeeded()
    assert not limit.grow()
    limit.succeeded()
    assert (limit.grow(), limit.value) == (True, 10)
    assert not limit.grow(), "it never grows beyond the declared size"


def test_a_failure_resets_the_count_of_good_batches() -> None:
    limit = BatchLimit(8)
    limit.shrink()
    for _ in range(GROWS_AFTER):
        limit.succeeded()
    limit.shrink()
    assert (limit.grow(), limit.value) == (False, 2)
