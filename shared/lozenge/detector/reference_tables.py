"""Reference tables: declared files that a detector joins on, re-read at a batch boundary when they change."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lozenge.detector.manifest import Table
from lozenge.errors import DetectorError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def load(spark: "SparkSession", tables: Mapping[str, Table], folder: Path) -> dict[str, "DataFrame"]:
    """Every declared table by name; raises DetectorError for one that is not there."""
    frames = {}
    for name, table in tables.items():
        path = str(_existing(name, table, folder))
        if table.columns:
            frames[name] = spark.read.csv(path, header=True, schema=table.columns, mode="FAILFAST")
        else:
            frames[name] = spark.read.parquet(path)
    return frames


def version(tables: Mapping[str, Table], folder: Path) -> str:
    """Twelve hex digits over the tables' contents; changes when any of them does."""
    digest = hashlib.sha256()
    for name, table in sorted(tables.items()):
        path = _existing(name, table, folder)
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        for file in files:
            digest.update(f"{name}\0{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def _existing(name: str, table: Table, folder: Path) -> Path:
    path = folder / table.path
    if not path.exists():
        raise DetectorError(
            f"reading table {name}: {path} does not exist",
            hint="put the file there, or correct the table's path in [tool.lozenge.tables]",
        )
    return path
