"""Plans the query of a detector without a broker and without events, as its job does at a start."""

import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lozenge.detector.definition import Settings
from lozenge.detector.fold import Fold, expressions
from lozenge.detector.loader import LoadedDetector
from lozenge.detector.tables.reference_tables import ReferenceTables
from lozenge.errors import DetectorError, SparkGone, ToolchainError, first_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def check(loaded: LoadedDetector, settings: Settings) -> str:
    """Raises DetectorError if a job could not be planned with `settings`, with the words of the job.

    Returns why that cannot be known here: a declared table is on another machine, or no Spark starts. Else "".
    """
    from lozenge.contracts.topics import Topics
    from lozenge.job.identity import Identity
    from lozenge.job.query.query_builder import build_operator, check_plan

    tables = ReferenceTables(loaded.declaration.tables, loaded.folder)
    try:
        tables.take()
    except DetectorError as error:
        return first_line(error)
    identity = Identity(loaded.name, "plan", live=False, key=loaded.key, topics=Topics(), stream=loaded.stream)
    with tempfile.TemporaryDirectory() as folder:
        try:
            result = detected(loaded, settings, tables, stream_of(folder))
        except (SparkGone, ToolchainError) as error:
            return first_line(error)
        check_plan(loaded.name, loaded, expressions(result), single_stream=True)
        build_operator(result, loaded, identity, settings, 1, range(1)).frame()
    return ""


def stream_of(folder: str) -> "Callable[[SparkSession], DataFrame]":
    """A stream of records, which has none as long as `folder` is empty."""
    from lozenge.spark import kafka_source

    return lambda spark: spark.readStream.schema(kafka_source.RECORDS).parquet(folder)


def detected(
    loaded: LoadedDetector,
    settings: Settings,
    tables: ReferenceTables,
    records: "Callable[[SparkSession], DataFrame]",
) -> "DataFrame | Fold[Any]":
    """What `detect` makes of the events in `records`, with the `tables` that were taken.

    Raises DetectorError; SparkGone and ToolchainError if there is no Spark.
    """
    from lozenge.host.tool_host import tool_session
    from lozenge.job.query import canonical_events
    from lozenge.job.query.query_builder import detect

    manifest = loaded.declaration
    spark = tool_session(f"{loaded.name}-plan")
    events = canonical_events.events(records(spark), loaded.stream.schemas, loaded.stream, loaded.key_column)
    if manifest.lateness is not None:
        events = canonical_events.watermarked([events], manifest.lateness)
    return detect(loaded.name, loaded, events, settings, tables.load(spark))
