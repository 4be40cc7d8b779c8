"""A partition of a cache begins where its store is, or at the beginning of a topic that is another one."""

import pytest

from lozenge.cache.entries import CachePosition
from lozenge.sink.cache_partition import begin

BOUNDS = 10, 90
at = CachePosition


@pytest.mark.parametrize(
    ("stored", "expected", "problem"),
    [
        pytest.param(None, at("t", 1, 10), "", id="a new cache"),
        pytest.param(at("t", 3, 50), at("t", 3, 50), "", id="a restart"),
        pytest.param(at("t", 3, 90), at("t", 3, 90), "", id="at the end"),
        pytest.param(at("t", 3, 4), at("t", 3, 10), "6 offsets were deleted", id="behind the retention"),
        pytest.param(at("u", 3, 50), at("t", 4, 10), "created again", id="another topic"),
        pytest.param(at("t", 3, 91), at("t", 4, 10), "ends at 90", id="a topic that lost records"),
    ],
)
def test_a_partition_begins_where_its_store_is(
    stored: CachePosition | None, expected: CachePosition, problem: str
) -> None:
    found = begin(stored, "t", BOUNDS)
    assert found.position == expected
    assert problem in found.problem
    assert bool(problem) is bool(found.problem)
