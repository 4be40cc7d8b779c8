"""A release is in force once every partition of its raw topics has begun with it."""

import pytest

from lozenge_deploy.operations.streams.await_taking import is_complete


@pytest.mark.parametrize(
    ("since", "complete"),
    [
        ({}, False),
        ({"A": {0: 5, 1: 6}}, False),
        ({"A": {0: 5, 1: 6}, "B": {0: 1}}, False),
        ({"A": {0: 5, 1: 6}, "B": {0: 1, 1: 0}}, True),
    ],
)
def test_it_is_complete_in_all_partitions(since: dict[str, dict[int, int]], complete: bool) -> None:
    assert is_complete(since, {"A": 2, "B": 2}) == complete


def test_where_no_topic_is_known_any_start_counts() -> None:
    assert not is_complete({}, {})
    assert is_complete({"A": {0: 5}}, {})
