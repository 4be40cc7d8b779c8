"""Temporary files of a process: what was left is gone, reports of a JVM's crash are not."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from lozenge.errors import DetectorError
from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.releases import detector_process
from lozenge_deploy.supervision.temp_dirs import emptied, temporary_folder


def test_what_a_killed_process_left_is_gone_but_not_why_its_jvm_crashed(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "tmp", tmp_path / "elsewhere"
    assert emptied(folder) == {"TMPDIR": str(folder)}
    elsewhere.mkdir()
    (elsewhere / "file").touch()
    (folder / "blockmgr-1" / "0a").mkdir(parents=True)
    (folder / "blockmgr-1" / "0a" / "block").touch()
    (folder / "librocksdb.so").touch()
    (folder / "link").symlink_to(elsewhere)
    (folder / "lozenge-jvm-crash-7.log").touch()
    emptied(folder)
    assert [left.name for left in folder.iterdir()] == ["lozenge-jvm-crash-7.log"]
    assert (elsewhere / "file").exists()


def test_what_a_passing_process_leaves_goes_with_its_block() -> None:
    with temporary_folder() as variables:
        folder = Path(variables["TMPDIR"])
        killed = subprocess.run(["sh", "-c", 'mkdir "$TMPDIR/blockmgr"; kill -9 $$'], env=os.environ | variables)
        assert (killed.returncode, (folder / "blockmgr").is_dir()) == (-9, True)
    assert not folder.exists()


def test_a_detectors_own_code_leaves_nothing_behind_however_it_ends(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"  # it says where its temporary files lie, and is killed
    python.parent.mkdir()
    python.write_text('#!/bin/sh\nmkdir "$TMPDIR/blockmgr" && echo "$TMPDIR" >&2\nkill -9 $$\n')
    python.chmod(0o755)
    with pytest.raises(DetectorError) as asked:
        detector_process.backtest("spotter", python, KafkaSettings(), "1h", {})
    with pytest.raises(DetectorError) as filled:
        list(detector_process.backfill("spotter", python, KafkaSettings(), "r1", {}))
    folders = {Path(str(error.value)) for error in (asked, filled)}
    assert len(folders) == 2
    assert not [folder for folder in folders if folder.exists()]
    assert tempfile.gettempdir() in {str(folder.parent) for folder in folders}
