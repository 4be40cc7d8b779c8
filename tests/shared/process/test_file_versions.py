"""The last good version of a file stays in force, as a private copy, whatever happens to the file."""

import errno
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lozenge.process.file_versions import KEPT, FileVersions, data_files
from lozenge.process.last_good import Bounds, Contents


def prepare(copy: Path, ready: Path) -> Contents:
    """A version is good if no line of it says "bad"; users read its upper case."""
    text = "".join(file.read_text() for file in data_files(copy))
    ready.write_text(text.upper())
    problems = ("it says bad",) if "bad" in text else ()
    return Contents("", len(text.splitlines()), terminated=text.endswith("\n"), problems=problems)


def of(source: Path, **how: float) -> FileVersions:
    return FileVersions(source, source.with_name("copies"), prepare, Bounds(), settled_seconds=how.get("settled", 0.0))


def digest_of(kept: FileVersions) -> str:
    assert kept.in_force is not None
    return kept.in_force.digest


def in_use(kept: FileVersions) -> str:
    return kept.path(digest_of(kept)).read_text()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "list.txt"
    file.write_text("one\n")
    return file


def begun(source: Path, **how: float) -> FileVersions:
    kept = of(source, **how)
    kept.poll()
    assert in_use(kept) == "ONE\n"
    return kept


def test_a_good_change_is_in_force_once_it_is_settled(source: Path) -> None:
    kept = begun(source)
    digest = kept.in_force
    source.write_text("two\n")
    kept.poll()
    assert in_use(kept) == "TWO\n"
    assert kept.in_force != digest


def test_a_change_counts_only_after_it_has_looked_the_same_for_some_time(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    kept = begun(source, settled=1.0)
    for text in ("tw", "two", "two\n"):
        source.write_text(text)
        kept.poll()
        now[0] += 0.9
        kept.poll()
        assert in_use(kept) == "ONE\n"
    now[0] += 0.2
    kept.poll()
    assert in_use(kept) == "TWO\n"


def _no_file(source: Path) -> None:
    source.unlink()


def _folder_without_files(source: Path) -> None:
    source.unlink()
    source.mkdir()


def _pipe(source: Path) -> None:
    source.unlink()
    os.mkfifo(source)


def _bad(source: Path) -> None:
    source.write_text("bad\n")


def _empty(source: Path) -> None:
    source.write_text("")


def _cut(source: Path) -> None:
    source.write_text("one\ntw")


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (_no_file, "cannot be read: No such file"),
        (_folder_without_files, "it has no rows"),
        (_pipe, "cannot be read"),
        (_bad, "it says bad"),
        (_empty, "it has no rows"),
        (_cut, "may be cut off"),
    ],
)
def test_what_is_bad_is_refused_by_its_cause_and_the_last_good_version_stays(
    spoil: Callable[[Path], None], why: str, source: Path
) -> None:
    kept = begun(source)
    spoil(source)
    for _ in range(2):
        kept.poll()
        assert why in "; ".join(kept.refused)
        assert in_use(kept) == "ONE\n"
    shutil.rmtree(source) if source.is_dir() else source.unlink(missing_ok=True)
    source.write_text("two\n")
    kept.poll()
    assert (in_use(kept), kept.refused) == ("TWO\n", ())


def test_a_file_that_may_not_be_read_is_refused_by_name(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = begun(source)
    source.write_text("two\n")

    def denied(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfile", denied)
        kept.poll()
    assert kept.refused == ("it cannot be read: Permission denied",)
    assert in_use(kept) == "ONE\n"
    kept.poll()
    assert in_use(kept) == "TWO\n"
    assert not [*kept.refused]


def test_a_bad_version_that_is_put_back_is_no_alarm_any_more(source: Path) -> None:
    kept = begun(source)
    for text in ("bad\n", "one\n"):
        source.write_text(text)
        kept.poll()
    assert kept.refused == ()


def test_what_was_validated_is_what_users_read_though_the_source_is_replaced_meanwhile(source: Path) -> None:
    """Between the copy and the end of the validation the source becomes bad: that version is not taken."""

    def replaced_meanwhile(copy: Path, ready: Path) -> Contents:
        found = prepare(copy, ready)
        source.write_text("bad\n")
        return found

    kept = begun(source)
    kept._prepare = replaced_meanwhile
    source.write_text("two\n")
    kept.poll()
    assert in_use(kept) == "TWO\n"
    kept._prepare = prepare
    kept.poll()
    assert in_use(kept) == "TWO\n"
    assert [*kept.refused] == ["it says bad"]


def test_a_source_that_changes_while_it_is_copied_is_looked_at_again(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = begun(source)
    source.write_text("two\n")
    copyfile = shutil.copyfile

    def slow(origin: Path, target: Path) -> None:
        copyfile(origin, target)
        origin.write_text("three\n")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfile", slow)
        kept.poll()
    assert in_use(kept) == "ONE\n"
    kept.poll()
    assert in_use(kept) == "THREE\n"


def test_a_first_version_that_never_stops_changing_is_no_version(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copyfile, count = shutil.copyfile, iter(range(100))

    def busy(origin: Path, target: Path) -> None:
        copyfile(origin, target)
        origin.write_text(f"{next(count)}\n")

    monkeypatch.setattr(shutil, "copyfile", busy)
    kept = of(source)
    kept.poll()
    assert kept.in_force is None
    assert "changes while it is read" in kept.refused[0]


def test_the_version_in_force_survives_a_restart_with_a_bad_file(source: Path) -> None:
    begun(source)
    source.write_text("bad\n")
    kept = of(source)
    kept.poll()
    assert (in_use(kept), kept.refused) == ("ONE\n", ("it says bad",))


def test_a_good_change_during_a_restart_is_in_force_at_once(source: Path) -> None:
    begun(source)
    source.write_text("two\n")
    kept = of(source, settled=60.0)
    kept.poll()
    assert in_use(kept) == "TWO\n"


def test_without_a_change_nothing_is_read(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = begun(source)
    monkeypatch.setattr(shutil, "copyfile", lambda *_: pytest.fail("it copies"))
    kept.poll()


def test_a_file_that_is_only_touched_is_the_same_version(source: Path) -> None:
    kept = begun(source)
    version = kept.in_force
    os.utime(source, (1, 1))
    kept.poll()
    assert kept.in_force is version


def test_older_versions_stay_readable_for_a_while_and_not_for_ever(source: Path) -> None:
    kept = begun(source)
    digests = []
    for number in range(KEPT + 2):
        source.write_text(f"{number}\n")
        kept.poll()
        digests.append(digest_of(kept))
    assert [kept.path(digest).exists() for digest in digests] == [False, False, *[True] * KEPT]
    assert not [p for p in (source.parent / "copies").iterdir() if p.name.startswith(".")], "no half copy stays"


def test_an_earlier_version_may_come_back(source: Path) -> None:
    kept = begun(source)
    first = kept.in_force
    for text in ("two\n", "one\n"):
        source.write_text(text)
        kept.poll()
    assert kept.in_force == first


def test_the_version_of_a_folder_covers_names_and_contents_but_not_what_a_writer_hides(tmp_path: Path) -> None:
    folder = tmp_path / "list"
    (folder / "day=1").mkdir(parents=True)
    (folder / "day=1" / "part-0").write_text("one\n")
    kept, seen = of(folder), []
    for change in ("day=1/part-1", "day=2/part-0", "_SUCCESS", ".part-0.crc", "_temporary/part-9"):
        kept.poll()
        seen.append(digest_of(kept))
        (folder / change).parent.mkdir(exist_ok=True)
        (folder / change).write_text("two\n")
    kept.poll()
    assert len(set(seen[:3])) == 3
    assert {*seen[2:], digest_of(kept)} == {seen[2]}
