"""Checkpoints: an id that changes with every renewal, and the offsets that Spark planned."""

from pathlib import Path

import pytest

from lozenge.errors import ToolchainError
from lozenge.spark.checkpoint import Checkpoint, planned_ends


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


def test_sources_may_share_a_topic_or_not(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text('v1\n{}\n{"t":{"0":23}}\n{"t":{"1":5},"u":{"0":1}}\n')
    assert planned_ends(tmp_path, 0) == {"t": {"0": 23, "1": 5}, "u": {"0": 1}}
    assert planned_ends(tmp_path, 1) is None


def test_another_format_of_offsets_is_refused(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text('v2\n{}\n{"t":{"0":23}}\n')
    with pytest.raises(ToolchainError, match="has the format v2"):
        planned_ends(tmp_path, 0)


def test_going_back_forgets_what_was_planned_and_done_since(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    checkpoint.renew()
    for folder, batches in (("offsets", (8, 9, 10, 11)), ("commits", (8, 9, 10))):
        (checkpoint.folder / folder).mkdir()
        for batch in batches:
            (checkpoint.folder / folder / str(batch)).touch()
    (checkpoint.folder / "commits" / ".10.1234.tmp").touch()
    checkpoint.back_to(9)
    assert checkpoint.last_planned() == 9
    assert sorted(file.name for file in (checkpoint.folder / "commits").iterdir()) == [".10.1234.tmp", "8", "9"]


def test_a_renewed_checkpoint_has_another_id(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    checkpoint.renew()
    first = checkpoint.id
    checkpoint.renew()
    assert checkpoint.id
    assert checkpoint.id != first
