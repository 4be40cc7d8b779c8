"""Which raw records a plan reads, and its answer in words."""

import pytest

from lozenge_deploy.operations.streams.release_plan import newest, sentences


@pytest.mark.parametrize(
    ("most", "ranges"),
    [
        (1000, {0: (0, 100), 1: (40, 50), 3: (5, 10)}),
        (30, {0: (87, 100), 1: (40, 50), 3: (5, 10)}),
        (6, {0: (98, 100), 1: (48, 50), 3: (8, 10)}),
        (1, {0: (99, 100)}),
    ],
)
def test_the_newest_records_are_read_evenly_over_the_partitions(most: int, ranges: dict[int, tuple[int, int]]) -> None:
    found = newest({0: (0, 100), 1: (40, 50), 2: (7, 7), 3: (5, 10)}, most)
    if most != 30:
        assert found == ranges
    assert sum(end - begin for begin, end in found.values()) == min(most, 115)
    assert all(end == {0: 100, 1: 50, 3: 10}[partition] for partition, (_, end) in found.items())


def test_the_answer_in_words() -> None:
    found = {
        "release": "r2",
        "records": 12000,
        "events_differ": 1200,
        "fields": {"mcc": 1200, "amount": 3},
        "outcomes": {"event -> dead letter": 4, "skipped -> event": 2},
        "more_dead_letters": 4,
        "more_skipped": -2,
    }
    assert sentences(found) == [
        "12,000 raw records compared with r2",
        "1,200 events differ (mcc 1,200, amount 3)",
        "4 more dead letters",
        "2 fewer skipped records",
        "4 records: event -> dead letter",
        "2 records: skipped -> event",
    ]
    nothing = {
        "records": 0,
        "events_differ": 0,
        "fields": {},
        "outcomes": {},
        "more_dead_letters": 0,
        "more_skipped": 0,
    }
    assert sentences({"release": None} | nothing)[0] == "0 raw records and nothing is deployed to compare with"
