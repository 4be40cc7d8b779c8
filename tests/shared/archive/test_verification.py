from lozenge.archive.verification import PartitionProof, proof, totals


def of(
    archived: list[int], records: list[int], end: int = 100, earliest: int = 0, dead: set[int] | None = None
) -> PartitionProof:
    return proof("t", 0, end, archived, records, earliest, frozenset(dead or ()))


def test_equal_offsets_are_clean_and_gaps_of_markers_count_for_nothing() -> None:
    found = of([0, 1, 4], [0, 1, 4])
    assert found.clean
    assert (found.rows, found.problems) == (3, [])


def test_records_behind_the_end_are_not_expected() -> None:
    assert of([0, 1], [0, 1, 2, 3], end=2).clean


def test_a_missing_a_repeated_and_a_foreign_row_are_each_found() -> None:
    found = of([0, 2, 2, 3, 5], [0, 1, 2, 5])
    assert (found.missing, found.twice, found.foreign) == ([1], [2], [3])
    assert not found.clean
    assert found.problems == ["1 missing: 1", "1 twice: 2", "1 not in the topic: 3"]


def test_rows_beyond_the_last_record_or_the_end_are_foreign() -> None:
    assert of([0, 7, 8], [0]).foreign == [7, 8]
    assert of([0, 7], [0, 7], end=5).foreign == [7]


def test_a_dead_letter_of_the_sink_is_not_missing() -> None:
    found = of([0], [0, 1], dead={1})
    assert found.clean
    assert found.dead_letters == 1


def test_rows_of_records_that_the_topic_no_longer_has_are_only_checked_for_repeats() -> None:
    found = of([0, 1, 1, 9], [9], earliest=5)
    assert (found.unchecked, found.rows, found.twice) == (2, 1, [1])


def test_many_offsets_are_named_by_the_first() -> None:
    [problem] = of([], list(range(50))).problems
    assert problem == "50 missing: 0, 1, 2, 3, 4 and 45 more"


def test_totals_are_sums_over_partitions() -> None:
    assert totals([of([0], [0]), of([], [0])]) == {
        "rows": 1,
        "dead_letters": 0,
        "unchecked": 0,
        "missing": 1,
        "twice": 0,
        "foreign": 0,
    }
