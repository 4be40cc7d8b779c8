"""A class-data archive is used only whole, and only for the class path that it was made of."""

from pathlib import Path

import pytest

from lozenge.toolchain.cds import ClassDataArchive


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClassDataArchive:
    monkeypatch.setenv("LOZENGE_CACHE", str(tmp_path / "cache"))
    jar = tmp_path / "a.jar"
    jar.write_bytes(b"classes")
    return ClassDataArchive("program", tmp_path, [jar], "no.such.training")


def made(archive: ClassDataArchive, content: bytes) -> Path:
    stem = archive._stem
    stem.parent.mkdir(parents=True, exist_ok=True)
    file = stem.with_name(f"{stem.name}-{len(content)}.jsa")
    file.write_bytes(content)
    return file


def test_a_truncated_archive_is_not_used(archive: ClassDataArchive) -> None:
    whole = made(archive, b"abc")
    assert archive.file() == whole
    assert any(str(whole) in option for option in archive.options())
    whole.write_bytes(b"ab")
    assert archive.file() is None
    assert archive.options() == []


def test_an_archive_of_other_jars_is_not_used(archive: ClassDataArchive) -> None:
    made(archive, b"abc")
    archive.class_path[0].write_bytes(b"other classes")
    changed = ClassDataArchive(archive.name, archive.home, archive.class_path, archive.training)
    assert changed.file() is None


def test_a_training_that_fails_costs_a_sentence_and_nothing_else(
    archive: ClassDataArchive, capsys: pytest.CaptureFixture[str]
) -> None:
    assert archive.make() is None
    assert "the training wrote none; it said" in capsys.readouterr().err
