"""Small disks that are full for a while."""

from pathlib import Path

import pytest

from tests.faults.disks import filled, small_disk


def test_nothing_can_be_written_to_a_full_disk_and_all_can_afterwards(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    with small_disk(folder, 8) as refused:
        if refused:
            pytest.skip(f"this machine lets us mount nothing: {refused}")
        (folder / "before").write_bytes(b"x" * 5000)
        with filled(folder), pytest.raises(OSError, match="No space left"):
            (folder / "within").write_bytes(b"x")
        (folder / "after").write_bytes(b"x" * 5000)
        assert (folder / "before").read_bytes() == b"x" * 5000


def test_where_nothing_can_be_mounted_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with small_disk(tmp_path / "disk", 8) as refused:
        assert refused
