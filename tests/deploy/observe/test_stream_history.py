"""Which release was in force from which raw offsets on, from the coverage of upstream."""

from lozenge.protocol.coverage import OFFSETS_RESET, STARTED, CoverageSegment
from lozenge_deploy.observe.stream_history import begun, change_rows, changes, last_since, since_text


def segment(release: str, topic: str, since: dict[int, int], digest: str = "d") -> CoverageSegment:
    return CoverageSegment(STARTED, release, digest, 0, since, since, topic=topic, at=0.0)


SEGMENTS = [
    segment("folder", "A", {0: 0, 1: 0}),
    segment("folder", "B", {0: 0}),
    segment("folder", "A", {0: 10, 1: 4}),  # a restart
    segment("r1", "A", {0: 12, 1: 5}),
    segment("r1", "B", {0: 3}),
    CoverageSegment(OFFSETS_RESET, "", "", 0, {0: 20}, {0: 2}, topic="A", at=0.0),
    segment("r1", "A", {0: 2}),
    segment("r2", "A", {0: 30}),  # another instance has partition 1 still
    segment("r1", "A", {1: 9}),
    segment("r2", "A", {1: 11}),
    segment("folder", "A", {0: 40, 1: 41}, digest="e"),
]


def test_a_change_is_a_start_with_another_release_or_with_other_files() -> None:
    found = [(each.release, each.topic, each.since) for each in changes(SEGMENTS)]
    assert found == [
        ("folder", "A", {0: 0, 1: 0}),
        ("folder", "B", {0: 0}),
        ("r1", "A", {0: 12, 1: 5}),
        ("r1", "B", {0: 3}),
        ("r2", "A", {0: 30}),
        ("r2", "A", {1: 11}),
        ("folder", "A", {0: 40, 1: 41}),
    ]
    assert change_rows(changes(SEGMENTS))[2] == {
        "at": "1970-01-01 00:00:00", "release": "r1", "digest": "d", "topic": "A", "since": "0:12 1:5",
    }  # fmt: skip


def test_the_last_offsets_of_each_release_are_gathered_over_topics_and_instances() -> None:
    found = last_since(changes(SEGMENTS))
    assert found["r2"] == {"A": {0: 30, 1: 11}}
    assert found["r1"] == {"A": {0: 12, 1: 5}, "B": {0: 3}}
    assert since_text(found["r1"]) == "A 0:12 1:5; B 0:3"


def test_a_release_has_begun_where_it_started_first() -> None:
    assert begun(SEGMENTS[3:], "r1") == {"A": {0: 12, 1: 5}, "B": {0: 3}}
    assert begun(SEGMENTS[:3], "r1") == {}
