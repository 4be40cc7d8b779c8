"""Reference tables are found in the detector's folder, and their version follows their contents."""

from pathlib import Path

import pytest

from lozenge.detector.manifest import Table
from lozenge.detector.reference_tables import version
from lozenge.errors import DetectorError

LIMITS = {"limits": Table(path="limits.csv", columns="mcc string, mcc_limit int")}


def test_the_version_changes_with_the_contents_of_a_table(tmp_path: Path) -> None:
    file = tmp_path / "limits.csv"
    file.write_text("mcc,mcc_limit\n5411,10\n")
    first = version(LIMITS, tmp_path)
    assert len(first) == 12
    assert version(LIMITS, tmp_path) == first
    file.write_text("mcc,mcc_limit\n5411,20\n")
    assert version(LIMITS, tmp_path) != first


def test_the_version_covers_every_file_of_a_folder(tmp_path: Path) -> None:
    tables = {"cards": Table(path="cards")}
    (tmp_path / "cards").mkdir()
    (tmp_path / "cards" / "part-0.parquet").write_bytes(b"0")
    first = version(tables, tmp_path)
    (tmp_path / "cards" / "part-1.parquet").write_bytes(b"1")
    assert version(tables, tmp_path) != first


def test_the_version_does_not_depend_on_the_order_of_the_tables(tmp_path: Path) -> None:
    for name in ("a.parquet", "b.parquet"):
        (tmp_path / name).write_text(name)
    a, b = Table(path="a.parquet"), Table(path="b.parquet")
    assert version({"a": a, "b": b}, tmp_path) == version({"b": b, "a": a}, tmp_path)


def test_a_missing_table_is_named_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(DetectorError, match=r"reading table limits: .*limits\.csv does not exist") as raised:
        version(LIMITS, tmp_path)
    assert "[tool.lozenge.tables]" in (raised.value.hint or "")
