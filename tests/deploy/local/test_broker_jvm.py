"""A new data folder of the embedded broker is complete or absent, whatever ends its process in between."""

from pathlib import Path

import pytest

from lozenge_deploy.local import broker_jvm


@pytest.fixture
def formatted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every folder that was formatted; a format takes no JVM here."""
    made: list[Path] = []

    def make(folder: Path) -> None:
        (folder / "topics").mkdir(parents=True)
        (folder / "topics" / "meta.properties").write_text("version=1\n")
        made.append(folder)

    monkeypatch.setenv("LOZENGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(broker_jvm, "_make_formatted", make)
    return made


def test_a_folder_is_formatted_once_and_copied(formatted: list[Path], tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        broker_jvm.copy_formatted(tmp_path / name)
        assert (tmp_path / name / "topics" / "meta.properties").exists()
    assert len(formatted) == 1


def test_a_copy_that_was_cut_short_is_made_again(
    formatted: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_short(source: Path, stage: Path) -> None:
        stage.mkdir()
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("lozenge_deploy.local.broker_jvm.shutil.copytree", cut_short)
        with pytest.raises(OSError, match="no space"):
            broker_jvm.copy_formatted(tmp_path)
    assert not (tmp_path / "topics").exists()
    broker_jvm.copy_formatted(tmp_path)
    assert (tmp_path / "topics" / "meta.properties").exists()
