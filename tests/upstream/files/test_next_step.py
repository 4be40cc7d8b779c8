from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from lozenge.file_sources.definition import Format
from lozenge.file_sources.topics import partition_of_file
from lozenge.protocol.file_positions import FileId, FilePosition, FileState, Place
from lozenge.protocol.source_requests import FileRetry
from lozenge_upstream.files.next_step import FileStep, as_requested, counts, gone, next_step, too_bad, work
from lozenge_upstream.files.storage import FoundFile
from tests.upstream.files.samples import source_of

FIXED = source_of(Path("in"), Format.CSV)
GROWING = source_of(Path("in"), Format.CSV, appendable=True)
MOVED = source_of(Path("in"), Format.CSV, after="move", move_to="out")
AT = datetime(2026, 11, 28, tzinfo=UTC)
ID = FileId(100, 1, "d")
GROWN, SMALLER, TOUCHED = FileId(150, 2), FileId(50, 2), FileId(100, 2)


def _known(state: FileState, path: str = "a", **given: object) -> FilePosition:
    return msgspec.structs.replace(FilePosition(path, ID, state, Place(rows=5, offset=100), at=AT), **given)


@pytest.mark.parametrize(
    ("state", "now", "fixed", "growing"),
    [
        (FileState.COPYING, ID, FileStep.RESUME, FileStep.RESUME),
        (FileState.COPYING, GROWN, FileStep.FAIL, FileStep.RESUME),
        (FileState.COPYING, SMALLER, FileStep.FAIL, FileStep.FAIL),
        (FileState.COPYING, TOUCHED, FileStep.FAIL, FileStep.FAIL),
        (FileState.DONE, ID, FileStep.NOTHING, FileStep.NOTHING),
        (FileState.DONE, GROWN, FileStep.FAIL, FileStep.RESUME),
        (FileState.DONE, SMALLER, FileStep.FAIL, FileStep.FAIL),
        (FileState.DONE, TOUCHED, FileStep.FAIL, FileStep.FAIL),
        (FileState.FAILED, ID, FileStep.NOTHING, FileStep.NOTHING),
        (FileState.FAILED, GROWN, FileStep.NOTHING, FileStep.NOTHING),
    ],
)
def test_a_changed_file_fails_unless_it_may_grow_and_did(
    state: FileState, now: FileId, fixed: FileStep, growing: FileStep
) -> None:
    file = FoundFile("a", now)
    assert next_step(FIXED, file, _known(state)) is fixed
    assert next_step(GROWING, file, _known(state)) is growing


def test_a_file_that_nothing_is_known_of_is_copied() -> None:
    assert next_step(FIXED, FoundFile("a", ID), None) is FileStep.COPY


def test_a_copied_file_that_is_still_there_is_moved() -> None:
    assert next_step(MOVED, FoundFile("a", ID), _known(FileState.DONE)) is FileStep.CLEAR


def test_an_instance_does_what_was_begun_first_and_only_its_own_partitions() -> None:
    files = [FoundFile(name, ID) for name in "abcdefgh"]
    begun = {"f": _known(FileState.COPYING, "f"), "b": _known(FileState.DONE, "b")}
    everything = [each.file.path for each in work(FIXED, files, begun, range(8))]
    assert everything == ["f", "a", "c", "d", "e", "g", "h"]
    held = {partition_of_file("a"), partition_of_file("f")}
    assert all(partition_of_file(each.file.path) in held for each in work(FIXED, files, begun, held))


def test_a_file_of_which_rows_are_missing_is_gone_and_a_copied_one_is_not() -> None:
    known = {"a": _known(FileState.COPYING), "b": _known(FileState.DONE, "b"), "c": _known(FileState.COPYING, "c")}
    assert [each.path for each in gone([FoundFile("c", ID)], known)] == ["a"]


def test_a_failed_file_continues_at_its_row_when_it_is_retried_and_only_once() -> None:
    failed = {"a": _known(FileState.FAILED, reason="damaged")}
    later, earlier = AT + timedelta(seconds=1), AT - timedelta(seconds=1)
    resumed = as_requested(failed, {"a": FileRetry(at=later)})["a"]
    assert (resumed.state, resumed.place.rows) == (FileState.COPYING, 5)
    assert as_requested(failed, {"a": FileRetry(at=earlier)}) == failed
    assert as_requested(failed, {"a": FileRetry(from_start=True, at=later)}) == {}
    assert as_requested({"b": _known(FileState.DONE, "b")}, {"b": FileRetry(at=later), "c": FileRetry(at=later)})


@pytest.mark.parametrize(
    ("bad", "rows", "total", "ended", "is_too_bad"),
    [
        (1, 10, 0, False, False),
        (1, 10, 0, True, True),
        (10, 1_000, 0, False, False),
        (11, 1_000, 0, False, True),
        (11, 100, 10_000, False, False),
        (101, 101, 10_000, False, True),
        (0, 0, 0, True, False),
    ],
)
def test_a_file_is_too_bad_by_the_share_of_its_rows(
    bad: int, rows: int, total: int, ended: bool, is_too_bad: bool
) -> None:
    position = _known(FileState.COPYING, place=Place(rows=rows), bad=bad, total=total)
    assert too_bad(FIXED, position, ended=ended) is is_too_bad


def test_files_are_counted_by_state_with_the_bytes_that_are_left() -> None:
    known = {"a": _known(FileState.COPYING), "b": _known(FileState.DONE, "b")}
    found = [FoundFile("a", ID), FoundFile("b", ID), FoundFile("c", FileId(7, 1))]
    assert counts(found, known, range(8)) == ({"waiting": 1, "copying": 1, "done": 1}, 107)
