"""Temporary files of a process: what was left is gone, reports of a JVM's crash are not."""

from pathlib import Path

from lozenge_deploy.scratch import scratch


def test_what_a_killed_process_left_is_gone_but_not_why_its_jvm_crashed(tmp_path: Path) -> None:
    place, elsewhere = tmp_path / "tmp", tmp_path / "elsewhere"
    assert scratch(place) == {"TMPDIR": str(place)}
    elsewhere.mkdir()
    (elsewhere / "file").touch()
    (place / "blockmgr-1" / "0a").mkdir(parents=True)
    (place / "blockmgr-1" / "0a" / "block").touch()
    (place / "librocksdb.so").touch()
    (place / "link").symlink_to(elsewhere)
    (place / "lozenge-jvm-crash-7.log").touch()
    scratch(place)
    assert [left.name for left in place.iterdir()] == ["lozenge-jvm-crash-7.log"]
    assert (elsewhere / "file").exists()
