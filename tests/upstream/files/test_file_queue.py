from pathlib import Path

from lozenge.file_sources.definition import Format
from lozenge_upstream.files.file_queue import FileQueue
from lozenge_upstream.files.next_step import Work
from lozenge_upstream.files.storage import Storage
from tests.upstream.files.samples import source_of

EVERY = range(8)


def _queue(folder: Path, **given: object) -> FileQueue:
    source = source_of(folder, Format.CSV, poll="1h", **given)
    return FileQueue(source, Storage(source))


def _listed(queue: FileQueue) -> None:
    queue.list_files()
    queue.plan({}, EVERY)


def _names(queue: FileQueue) -> list[str]:
    found = list[Work]()
    while (each := queue.next()) is not None:
        found.append(each)
    return sorted(each.file.path for each in found)


def test_each_file_is_done_once_until_files_are_listed_again(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("x")
    queue = _queue(tmp_path)
    assert queue.is_due()
    _listed(queue)
    assert _names(queue) == ["a.csv", "b.csv"]
    assert _names(queue) == []
    assert not queue.is_due()
    queue.clear()
    assert queue.is_due()


def test_a_file_that_changed_since_it_was_listed_is_listed_again(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x")
    queue = _queue(tmp_path)
    _listed(queue)
    (tmp_path / "a.csv").write_text("longer")
    assert queue.next() is None
    assert queue.is_due()
    _listed(queue)
    assert _names(queue) == ["a.csv"]


def test_a_file_that_may_grow_is_read_although_it_has(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x")
    queue = _queue(tmp_path, appendable=True)
    _listed(queue)
    (tmp_path / "a.csv").write_text("longer")
    assert _names(queue) == ["a.csv"]


def test_a_file_that_could_not_be_read_is_left_alone_for_a_while(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("x")
    queue = _queue(tmp_path)
    _listed(queue)
    queue.retry_later("a.csv", PermissionError(13, "Permission denied"))
    _listed(queue)
    assert _names(queue) == ["b.csv"]


def test_a_folder_that_cannot_be_listed_leaves_the_files_of_the_last_time(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text("x")
    queue = _queue(folder)
    _listed(queue)
    folder.rename(tmp_path / "elsewhere")
    queue.list_files()
    assert [file.path for file in queue.found] == ["a.csv"]
    assert not queue.is_due()
