"""The file source of a demo: its declaration is sound, and it is done once each file was copied or has failed."""

from pathlib import Path

from lozenge.protocol.file_positions import FileId, FilePosition, FileState
from lozenge_deploy.demo.files.running_source import left, sources_of
from lozenge_deploy.demo.sinks.extras import Extra


def position(path: str, state: FileState) -> FilePosition:
    return FilePosition(path, FileId(1, 1), state)


def test_no_source_runs_where_none_was_chosen(tmp_path: Path) -> None:
    none = sources_of([Extra.CACHE], tmp_path)
    assert (none.apps, none.folder, [*tmp_path.iterdir()]) == ([], None, [])


def test_its_folder_is_one_that_commands_read_and_its_files_have_a_place(tmp_path: Path) -> None:
    chosen = sources_of([Extra.FILES], tmp_path)
    assert chosen.apps == ["files-payments"]
    assert (tmp_path / "upstream" / "sources" / "payments" / "source.toml").is_file()
    assert chosen.folder is not None
    assert chosen.folder.is_dir()


def test_files_are_left_until_each_was_copied_or_has_failed() -> None:
    positions = [position("a", FileState.DONE), position("b", FileState.COPYING), position("c", FileState.FAILED)]
    assert left(["a", "b", "c", "d"], positions) == 2
    assert left(["a", "c"], positions) == 0
