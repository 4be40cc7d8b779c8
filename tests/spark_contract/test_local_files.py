"""Checkpoints without checksum files, and snapshots of state that are copied there."""

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lozenge.spark.internals.driver_jvm import java
from lozenge.spark.internals.local_files import checkpoint_files


def test_a_snapshot_of_state_is_copied_both_ways_without_checksum_files(spark: SparkSession, tmp_path: Path) -> None:
    """What `RocksDBFileManager` does with each file of a snapshot: at its upload, and when a process loads it."""
    files, path = checkpoint_files(spark), java(spark).org.apache.hadoop.fs.Path
    assert files.getClass().getSimpleName() == "RawLocalFileSystem"
    original, copy, back = (tmp_path / name for name in ("original", "copy", "back"))
    original.write_bytes(b"state")
    files.copyFromLocalFile(path(str(original)), path(copy.as_uri()))
    assert copy.read_bytes() == b"state"
    files.copyToLocalFile(path(copy.as_uri()), path(back.as_uri()))
    assert back.read_bytes() == b"state"
    assert not (tmp_path / ".copy.crc").exists()


def test_the_files_of_a_checkpoint_stay_without_checksum_files(spark: SparkSession, tmp_path: Path) -> None:
    files, path = checkpoint_files(spark), java(spark).org.apache.hadoop.fs.Path
    assert _class_of_files(spark, tmp_path) == "RawLocalFileSystem"
    stream = files.create(path((tmp_path / "offsets").as_uri()))
    stream.close()
    assert [file.name for file in tmp_path.iterdir()] == ["offsets"]


def _class_of_files(spark: SparkSession, folder: Path) -> Any:
    """Of the file system that another part of the JVM gets for a path."""
    conf = java(spark).org.apache.hadoop.conf.Configuration()
    return java(spark).org.apache.hadoop.fs.Path(folder.as_uri()).getFileSystem(conf).getClass().getSimpleName()
