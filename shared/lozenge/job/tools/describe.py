"""`python -m lozenge.job.tools.describe [NAME | FOLDER]`: what a detector is, by its own code.

Prints one JSON object, a `Description`. With `--settings JSON` it only tries these overrides, and prints
the settings that result and their digest. Spark is started for a stateful detector alone, to build its
fold, and for one in Real-Time Mode, to see that it can run so; no broker is needed. Exit codes as those of the job: 2
with every problem of the overrides.
"""

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_jsonable_python

from lozenge.contracts.schemas import newest, packaged
from lozenge.detector.definition import Settings
from lozenge.detector.fold import Fold
from lozenge.detector.loader import LoadedDetector, find
from lozenge.detector.manifest import Manifest
from lozenge.detector.state_schema import shape
from lozenge.durations import text_of
from lozenge.errors import DetectorError, LozengeError
from lozenge.job.settings import detector_settings
from lozenge.process import logging
from lozenge.process.shutdown import end
from lozenge.protocol.job_spec import parse_overrides

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Description(BaseModel):
    """A detector without its code: all that whoever deploys, configures or replaces it has to know.

    `settings` are the defaults, as `LOZENGE_JOB_SETTINGS` takes them; `settings_schema` is their JSON schema;
    `state_shape` is None unless it is stateful; `schemas` are the ids of the contracts it was built against.
    """

    model_config = ConfigDict(frozen=True)

    detector: str
    version: str
    declaration: Manifest
    settings: dict[str, Any]
    settings_digest: str
    settings_schema: dict[str, Any]
    state_shape: dict[str, Any] | None
    schemas: list[int]

    @property
    def kind(self) -> str:
        """What `[tool.lozenge]` declares: rule, aggregate, stateful or model."""
        return self.declaration.kind


def describe(loaded: LoadedDetector) -> Description:
    """What `loaded` is; raises ConfigError if its settings lack a default, DetectorError if it cannot be planned."""
    defaults = detector_settings(loaded, {})
    if loaded.declaration.realtime:
        _require_eligible(loaded, defaults)
    return Description(
        detector=loaded.name,
        version=loaded.version,
        declaration=loaded.declaration,
        settings=plain(defaults),
        settings_digest=defaults.digest,
        settings_schema=_schema(defaults),
        state_shape=shape(_fold(loaded, defaults)) if loaded.declaration.kind == "stateful" else None,
        schemas=[schema.id for schema in packaged()],
    )


def plain(settings: Settings) -> dict[str, Any]:
    """The values as JSON takes them and `detector_settings` reads them back; durations as people write them."""
    text = json.dumps(settings.model_dump(), default=_plain)
    values: dict[str, Any] = json.loads(text)
    return values


def _plain(value: object) -> Any:
    return text_of(value) if isinstance(value, timedelta) else to_jsonable_python(value)


def _schema(defaults: Settings) -> dict[str, Any]:
    """Their JSON schema, which tells the defaults in the words in which they are set."""
    found = type(defaults).model_json_schema()
    for name, value in plain(defaults).items():
        found["properties"][name]["default"] = value
    return found


def _fold(loaded: LoadedDetector, settings: Settings) -> Fold[Any]:
    """The fold that `loaded` makes of a table without events."""
    from lozenge.job.query import canonical_events

    fold = _detected(loaded, settings, lambda spark: spark.createDataFrame([], canonical_events.RECORDS))
    assert isinstance(fold, Fold)  # a stateful detector gives nothing else
    return fold


def _require_eligible(loaded: LoadedDetector, settings: Settings) -> None:
    """Raises DetectorError if what `loaded` makes of a stream cannot run in Real-Time Mode."""
    from lozenge.detector.fold import expressions
    from lozenge.job.query import canonical_events
    from lozenge.job.query.realtime_plan_check import refuse_ineligible

    with tempfile.TemporaryDirectory() as folder:
        result = _detected(
            loaded, settings, lambda spark: spark.readStream.schema(canonical_events.RECORDS).parquet(folder)
        )
        refuse_ineligible(loaded.name, loaded.declaration, expressions(result), of_one=True)


def _detected(
    loaded: LoadedDetector, settings: Settings, records: "Callable[[SparkSession], DataFrame]"
) -> "DataFrame | Fold[Any]":
    from lozenge.detector.reference_tables import load
    from lozenge.job.query import canonical_events
    from lozenge.job.query.result_check import refuse_misfit
    from lozenge.spark.session import spark_session

    declaration = loaded.declaration
    spark = spark_session(f"{loaded.name}-describe", cores=1)
    events = canonical_events.events(records(spark), [newest("event")], declaration.key_column)
    if declaration.lateness is not None:
        events = canonical_events.watermarked([events], declaration.lateness)
    tables = load(spark, declaration.tables, loaded.folder)
    try:
        result = loaded.detector.detect(events, settings, tables)
    except LozengeError:
        raise
    except Exception as error:  # whatever the author's code raises
        raise DetectorError(
            f"planning {loaded.name}: detect() raised {type(error).__name__}: {error}",
            hint="run the detector's tests; detect() must build expressions from the event's columns",
        ) from error
    return refuse_misfit(loaded.name, declaration, result)


def main() -> int:
    """Prints the description; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lozenge.job.tools.describe", description=__doc__)
    parser.add_argument("which", nargs="?")
    parser.add_argument("--settings", help="overrides to try, as a JSON object")
    given = parser.parse_args()
    logging.configure("describe")
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what the author's module prints is not the answer
            loaded = find(given.which)
            if given.settings is None:
                answer = describe(loaded).model_dump(mode="json")
            else:
                settings = detector_settings(loaded, parse_overrides(given.settings))
                answer = {"settings": plain(settings), "settings_digest": settings.digest}
    except LozengeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    end(main())
