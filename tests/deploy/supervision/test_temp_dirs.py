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
    place, elsewhere = tmp_path / "tmp", tmp_path / "elsewhere"
    assert emptied(place) == {"TMPDIR": str(place)}
    elsewhere.mkdir()
    (elsewhere / "file").touch()
    (place / "blockmgr-1" / "0a").mkdir(parents=True)
    (place / "blockmgr-1" / "0a" / "block").touch()
    (place / "librocksdb.so").touch()
    (place / "link").symlink_to(elsewhere)
    (place / "lozenge-jvm-crash-7.log").touch()
    emptied(place)
    assert [left.name for left in place.iterdir()] == ["lozenge-jvm-crash-7.log"]
    assert (elsewhere / "file").exists()


def test_what_a_passing_process_leaves_goes_with_its_block() -> None:
    with temporary_folder() as variables:
        place = Path(variables["TMPDIR"])
        killed = subprocess.run(["sh", "-c", 'mkdir "$TMPDIR/blockmgr"; kill -9 $$'], env=os.environ | variables)
        assert (killed.returncode, (place / "blockmgr").is_dir()) == (-9, True)
    assert not place.exists()


def test_a_detectors_own_code_leaves_nothing_behind_however_it_ends(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"  # it says where its temporary files lie, and is killed
    python.parent.mkdir()
    python.write_text('#!/bin/sh\nmkdir "$TMPDIR/blockmgr" && echo "$TMPDIR" >&2\nkill -9 $$\n')
    python.chmod(0o755)
    with pytest.raises(DetectorError) as asked:
        detector_process.backtest("spotter", python, KafkaSettings(), "1h", {})
    with pytest.raises(DetectorError) as filled:
        list(detector_process.backfill("spotter", python, KafkaSettings(), "r1", {}))
    places = {Path(str(error.value)) for error in (asked, filled)}
    assert len(places) == 2
    assert not [place for place in places if place.exists()]
    assert tempfile.gettempdir() in {str(place.parent) for place in places}
