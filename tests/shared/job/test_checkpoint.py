"""Checkpoints: an id that changes with every renewal, and the offsets that Spark planned."""

from pathlib import Path

from lozenge.job.checkpoint import Checkpoint


def test_a_renewed_checkpoint_is_empty_and_has_another_id(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    assert checkpoint.id == ""
    checkpoint.renew()
    first = checkpoint.id
    (checkpoint.folder / "leftover").touch()
    checkpoint.renew()
    assert checkpoint.id not in ("", first)
    assert list(checkpoint.folder.iterdir()) == []


def test_a_checkpoint_whose_folder_is_gone_has_no_id(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    checkpoint.renew()
    checkpoint.folder.rmdir()
    assert checkpoint.id == ""


def test_planned_offsets_join_all_sources(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    checkpoint.renew()
    offsets = checkpoint.folder / "offsets"
    offsets.mkdir()
    (offsets / "7").write_text('v1\n{"batchWatermarkMs":0}\n{"t":{"0":23}}\n{"t":{"1":5}}\n-\n')
    (offsets / ".7.crc").touch()
    assert checkpoint.planned(7) == {0: 23, 1: 5}
    assert checkpoint.planned(8) is None
    assert checkpoint.last_planned() == 7
