"""The file system by which Spark keeps checkpoints on this machine."""

from typing import Any, cast

from pyspark.sql import SparkSession

from lozenge.spark.internals.driver_jvm import java

_IMPLEMENTATION = "fs.file.impl"
_WITH_CHECKSUMS = "org.apache.hadoop.fs.LocalFileSystem"


def checkpoint_files(spark: SparkSession) -> Any:
    """Hadoop's file system of local paths in the JVM of a session, which all of its sessions share."""
    conf = cast(Any, spark)._jsc.hadoopConfiguration()
    return java(spark).org.apache.hadoop.fs.FileSystem.get(java(spark).java.net.URI.create("file:///"), conf)


def let_snapshots_be_copied(spark: SparkSession) -> None:
    """Lets the state store copy its snapshots where local files have no checksum files (`RawLocalFileSystem`).

    Assumes that Hadoop has one such object in a JVM, and that to copy it asks for the file system of local files by the
    object's own configuration, as an instance of a class that the other one is not.
    """
    files = checkpoint_files(spark)
    conf = java(spark).org.apache.hadoop.conf.Configuration(files.getConf())
    conf.set(_IMPLEMENTATION, _WITH_CHECKSUMS)
    conf.setBoolean(f"{_IMPLEMENTATION}.disable.cache", True)  # else it finds the object that is kept
    files.setConf(conf)
