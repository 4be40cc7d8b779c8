"""Speeds and times to resume are those of the rows, whatever order they are read in."""

from tests.faults.copied_rows import CopiedRows, Kill, Phase


def test_rows_count_for_the_phase_in_which_they_were_written() -> None:
    copied = CopiedRows([Phase(2, 100, 110), Phase(4, 120, 130)], [])
    for at in (99.9, *range(100, 110), 110, 115, *(120 + n / 4 for n in range(40)), 130):
        copied.take("a", at)
    assert copied.speeds() == [1, 4]


def test_a_phase_without_a_limit_ends_with_its_last_row() -> None:
    copied = CopiedRows([Phase(0, 100, float("inf"))], [])
    assert copied.speeds() == [0]
    for at in (104, 101, 102, 103):
        copied.take("a", at)
    assert copied.speeds() == [1]


def test_a_file_resumes_with_its_first_row_after_the_kill() -> None:
    copied = CopiedRows([], [Kill(100, ["a", "b"]), Kill(200, ["a"]), Kill(300, ["a", "ended"])])
    for file, at in (("a", 350), ("a", 205), ("a", 99), ("a", 107), ("a", 108), ("b", 103), ("c", 101), ("ended", 300)):
        copied.take(file, at)
    assert copied.resumed() == [3, 5, 7, 50]
