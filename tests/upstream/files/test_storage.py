import os
import time
from pathlib import Path

import pytest

from lozenge.errors import ConfigError
from lozenge.file_sources.definition import Format
from lozenge_upstream.files.storage import Storage, digest
from tests.full_disk import files_of_at_most, folder_on_another_disk
from tests.upstream.files.samples import source_of

SECOND_NS = 1_000_000_000


def _make(folder: Path, *names: str) -> None:
    for age, name in enumerate(reversed(names)):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
        os.utime(file, ns=(time.time_ns(), time.time_ns() - age * SECOND_NS))


def _complete(path: Path | str, **given: object) -> list[str]:
    storage = Storage(source_of(Path(path), Format.CSV, **given))
    return [file.path for file in storage.complete(time.time_ns())]


def test_files_come_in_the_order_of_their_time(tmp_path: Path) -> None:
    _make(tmp_path, "b.csv", "c.csv", "a.csv")
    assert _complete(tmp_path) == ["b.csv", "c.csv", "a.csv"]


def test_names_of_unfinished_and_hidden_files_are_left_alone(tmp_path: Path) -> None:
    _make(tmp_path, "a.csv.tmp", "a.csv.part", ".a.csv", "_SUCCESS", "_temporary/b.csv", "a.csv")
    assert _complete(tmp_path) == _complete(tmp_path / "**" / "*.csv") == ["a.csv"]


def test_a_pattern_takes_what_it_matches(tmp_path: Path) -> None:
    _make(tmp_path, "2026-01/a.csv", "2026-02/b.csv", "2025-12/c.csv", "2026-02/d.txt", "2026-02/deep/e.csv")
    assert sorted(_complete(tmp_path / "2026-*" / "*.csv")) == ["2026-01/a.csv", "2026-02/b.csv"]
    assert len(_complete(tmp_path / "**" / "*.csv")) == 4
    assert _complete(tmp_path / "2025-12" / "?.csv") == ["c.csv"]


def test_a_folder_with_signs_of_a_uri_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "100% of #1 [x] ü"
    _make(folder, "a.csv")
    assert _complete(folder) == ["a.csv"]


def test_a_file_is_complete_once_nobody_has_written_to_it_for_a_while(tmp_path: Path) -> None:
    _make(tmp_path, "a.csv")
    source = source_of(tmp_path, Format.CSV, complete="quiet", quiet="10s")
    now = time.time_ns()
    assert Storage(source).complete(now) == []
    assert [file.path for file in Storage(source).complete(now + 11 * SECOND_NS)] == ["a.csv"]


def test_a_marker_is_of_a_file_or_of_a_folder(tmp_path: Path) -> None:
    _make(tmp_path, "one/a.csv", "one/a.csv.done", "one/b.csv", "two/c.csv", "two/_SUCCESS", "three/d.csv")
    every = tmp_path / "**" / "*.csv"
    assert _complete(every, complete="marker", marker="{file}.done") == ["one/a.csv"]
    assert _complete(every, complete="marker") == ["two/c.csv"]


def test_a_file_moves_to_the_same_path_below_another_folder(tmp_path: Path) -> None:
    _make(tmp_path / "in", "day/a.csv")
    storage = Storage(source_of(tmp_path / "in" / "**" / "*.csv", Format.CSV))
    storage.move("day/a.csv", str(tmp_path / "out"))
    assert (tmp_path / "out" / "day" / "a.csv").read_text() == "day/a.csv"
    assert storage.now("day/a.csv") is None


def test_a_file_moves_to_another_disk_as_a_whole_or_stays(tmp_path: Path) -> None:
    _make(tmp_path / "in", "day/a.csv")
    storage = Storage(source_of(tmp_path / "in" / "**" / "*.csv", Format.CSV))
    with folder_on_another_disk(tmp_path) as out:
        with files_of_at_most(4), pytest.raises(OSError, match="File too large"):
            storage.move("day/a.csv", str(out))
        assert storage.now("day/a.csv") is not None
        assert [file for file in out.rglob("*") if file.is_file()] == []
        storage.move("day/a.csv", str(out))
        assert (out / "day" / "a.csv").read_text() == "day/a.csv"
    assert storage.now("day/a.csv") is None


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="missing"):
        _complete(tmp_path / "missing")


def test_a_place_of_an_unknown_kind_is_refused() -> None:
    source = source_of(Path("x"), Format.CSV).model_copy(update={"path": "gopher://x/y"})
    with pytest.raises(ConfigError, match="gopher"):
        Storage(source)


def test_a_digest_is_that_of_the_first_bytes_of_a_file_that_grew(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b"x" * 200_000)
    with file.open("rb") as before:
        old = digest(before, 200_000)
    with file.open("ab") as more:
        more.write(b"y" * 10)
    with file.open("rb") as after:
        assert digest(after, 200_000) == old
        assert digest(after, 200_010) != old
