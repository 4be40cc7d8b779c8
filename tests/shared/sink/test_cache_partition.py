"""A partition of a cache begins where its store is, or at the beginning of a topic that is another one."""

from typing import Any

import pytest

from lozenge.cache.entries import CachePosition
from lozenge.sink.cache_partition import WRITE_BYTES, begin, pieces

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


class Written:
    """A record of so many bytes at an offset."""

    def __init__(self, offset: int, size: int) -> None:
        self._offset, self._size = offset, size

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes:
        return b""

    def value(self) -> bytes:
        return bytes(self._size)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        pytest.param([], [([], 99)], id="none"),
        pytest.param([1, 1], [([0, 2], 99)], id="few"),
        pytest.param([5, 5, 5], [([0], 2), ([2], 4), ([4], 99)], id="large ones"),
        pytest.param([9, 1, 9], [([0], 2), ([2], 4), ([4], 99)], id="larger than a write"),
        pytest.param([4, 4, 4, 4], [([0, 2], 4), ([4, 6], 99)], id="two each"),
    ],
)
def test_a_write_has_so_many_bytes_at_most(sizes: list[int], expected: list[tuple[list[int], int]]) -> None:
    messages: Any = [Written(2 * number, size * WRITE_BYTES // 8) for number, size in enumerate(sizes)]
    assert [([each.offset() for each in part], end) for part, end in pieces(messages, 99)] == expected
