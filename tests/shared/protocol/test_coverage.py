"""Coverage: which release processed which offsets, gaps, and what was processed twice."""

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from lozenge.protocol.coverage import (
    BACKFILLED,
    OFFSETS_RESET,
    STARTED,
    CoverageSegment,
    Interval,
    backfill_gaps,
    covering,
    gaps,
    intervals,
    overlaps,
)


def line(
    release: str, since: Mapping[int, int], ended: Mapping[int, int] | None = None, **more: object
) -> CoverageSegment:
    fields = {"reason": STARTED, "digest": "d", "generation": 1, "ended": dict(ended or since), "since": dict(since)}
    return CoverageSegment(**fields | {"release": release} | more)  # type: ignore[arg-type]


def ranges(covered: list[Interval]) -> list[tuple[int, int, int, str]]:
    return [(i.partition, i.begin, i.end, i.release) for i in covered]


def test_a_cut_over_ends_one_interval_where_the_next_begins() -> None:
    covered = intervals([line("r1", {0: 5, 1: 0}), line("r2", {0: 9, 1: 7})], {0: 12, 1: 7})
    assert ranges(covered) == [(0, 5, 9, "r1"), (0, 9, 12, "r2"), (1, 0, 7, "r1"), (1, 7, 7, "r2")]
    assert not gaps(covered)
    assert not overlaps(covered)
    assert [i.open for i in covered] == [False, True, False, True]


def test_restarts_of_one_release_are_one_interval_and_other_settings_are_another() -> None:
    lines = [line("r1", {0: 0}), line("r1", {0: 4}, generation=2), line("r1", {0: 8}, digest="e")]
    covered = intervals(lines, {0: 9})
    assert ranges(covered) == [(0, 0, 8, "r1"), (0, 8, 9, "r1")]
    assert [i.digest for i in covered] == ["d", "e"]


def test_another_version_of_a_table_begins_another_interval() -> None:
    versions = [{"limits": "t1", "cards": "c1"}, {"cards": "c1", "limits": "t1"}, {"limits": "t2", "cards": "c1"}]
    covered = intervals([line("r1", {0: 4 * n}, tables=tables) for n, tables in enumerate(versions)], {0: 9})
    assert ranges(covered) == [(0, 0, 8, "r1"), (0, 8, 9, "r1")]
    assert [i.tables for i in covered] == [(("cards", "c1"), ("limits", "t1")), (("cards", "c1"), ("limits", "t2"))]


def test_a_move_forward_leaves_a_gap_until_it_is_filled() -> None:
    lines = [line("r1", {0: 0}), line("", {0: 50}, {0: 20}, reason=OFFSETS_RESET), line("r1", {0: 50})]
    assert gaps(intervals(lines, {0: 60})) == [Interval(0, 20, 50)]
    lines.append(line("r1", {0: 20}, reason=BACKFILLED, until={0: 40}))
    assert gaps(intervals(lines, {0: 60})) == [Interval(0, 40, 50)]
    lines.append(line("r2", {0: 40}, reason=BACKFILLED, until={0: 50}))
    covered = intervals(lines, {0: 70})
    assert not gaps(covered)
    assert covering(covered, 0, 45)[0].release == "r2"
    assert covered[-1].end == 70


def test_events_skipped_before_the_first_processed_one_are_a_gap_too() -> None:
    lines = [line("r1", {0: 4}), line("", {0: 50}, {0: 4}, reason=OFFSETS_RESET), line("r1", {0: 50})]
    assert gaps(intervals(lines, {0: 50})) == [Interval(0, 4, 50)]


def test_a_start_leaves_what_it_skipped_to_a_backfill_and_a_move_by_hand_does_not() -> None:
    lines = [
        line("r1", {0: 0, 1: 0}),
        line("r1", {0: 30, 1: 5}, {0: 10, 1: 5}),
        line("r1", {0: 40, 1: 5}, {0: 30, 1: 5}),  # nothing was processed in between: one gap of two starts
        line("", {0: 40, 1: 50}, {0: 44, 1: 9}, reason=OFFSETS_RESET),
        line("r1", {0: 40, 1: 50}),
    ]
    assert gaps(intervals(lines, {0: 45, 1: 50})) == [Interval(0, 10, 40), Interval(1, 9, 50)]
    assert backfill_gaps(lines, intervals(lines, {0: 45, 1: 50})) == [Interval(0, 10, 30), Interval(0, 30, 40)]
    lines.append(line("r1", {0: 10}, reason=BACKFILLED, until={0: 25}))
    assert backfill_gaps(lines, intervals(lines, {0: 45, 1: 50})) == [Interval(0, 25, 30), Interval(0, 30, 40)]


def test_a_move_back_is_an_overlap_and_both_releases_are_named() -> None:
    lines = [line("r1", {0: 0}), line("", {0: 10}, {0: 30}, reason=OFFSETS_RESET), line("r2", {0: 10})]
    covered = intervals(lines, {0: 35})
    assert overlaps(covered) == [Interval(0, 10, 30)]
    assert [i.release for i in covering(covered, 0, 29)] == ["r1", "r2"]
    assert [i.release for i in covering(covered, 0, 34)] == ["r2"]
    assert covering(covered, 0, 35) == []


def test_an_instance_that_takes_some_partitions_leaves_the_others_alone() -> None:
    covered = intervals([line("r1", {0: 0, 1: 0}), line("r2", {1: 6})], {0: 9, 1: 9})
    assert ranges(covered) == [(0, 0, 9, "r1"), (1, 0, 6, "r1"), (1, 6, 9, "r2")]


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["process", "move", "restart"]), st.integers(0, 40)), max_size=12))
def test_it_says_of_every_offset_how_often_it_was_processed(steps: list[tuple[str, int]]) -> None:
    position, times, lines = 0, dict.fromkeys(range(1000), 0), [line("r0", {0: 0})]
    for number, (what, by) in enumerate(steps, 1):
        if what == "process":
            for offset in range(position, position + by):
                times[offset] += 1
            position += by
        elif what == "move":
            lines += [line("", {0: by}, {0: position}, reason=OFFSETS_RESET), line(f"r{number}", {0: by})]
            position = by
        else:
            lines.append(line(f"r{number}", {0: position}))
    covered = intervals(lines, {0: position})
    assert {o: len(covering(covered, 0, o)) for o in times} == times
    holes = {o for o in range(position) if not times[o]}
    assert {o for gap in gaps(covered) for o in range(gap.begin, gap.end)} == holes
    assert {o for i in overlaps(covered) for o in range(i.begin, i.end)} == {o for o, n in times.items() if n > 1}
