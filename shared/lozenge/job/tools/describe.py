"""`python -m lozenge.job.tools.describe [NAME | FOLDER]`: describes a detector, by its own code.

Prints one JSON object, a `Description`. Spark is started only for a stateful detector, to build its fold, and for one
in Real-Time Mode, to check its plan. With `--settings JSON` it tries these overrides instead, as a running job does: by
the declaration of the settings, then by `detect()`. It prints the resulting settings, their digest, and as `unplanned`
why `detect()` could not be asked. It needs no broker. Exit codes are those of the job: 2 with every problem of the
overrides.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from pydantic import PydanticUserError
from pydantic_core import to_jsonable_python

from lozenge.contracts.schemas import packaged
from lozenge.detector.definition import Settings, sets_in_order
from lozenge.detector.description import Description
from lozenge.detector.fold import Fold, expressions
from lozenge.detector.loader import LoadedDetector
from lozenge.detector.state_schema import shape
from lozenge.detector.tables.reference_tables import ReferenceTables
from lozenge.durations import text_of
from lozenge.errors import ConfigError, first_line
from lozenge.job.settings import detector_settings
from lozenge.job.tools import command, dry_plan
from lozenge.process.shutdown import end
from lozenge.protocol.job_spec import parse_overrides


def describe(loaded: LoadedDetector) -> Description:
    """Raises ConfigError if a setting lacks a default or is no JSON, DetectorError if it cannot be planned."""
    defaults = detector_settings(loaded, {})
    try:
        settings, digest, schema = as_json(defaults), defaults.digest, _schema(defaults)
    except (TypeError, ValueError, PydanticUserError) as error:
        raise ConfigError(
            f"describing {loaded.name}: its settings cannot be written as JSON: {first_line(error)}",
            hint="settings are numbers, texts, times, and lists, sets and dictionaries of them",
        ) from error
    if loaded.declaration.realtime:
        _check_realtime(loaded, defaults)
    return Description(
        detector=loaded.name,
        version=loaded.version,
        declaration=loaded.declaration,
        stream=loaded.stream,
        settings=settings,
        settings_digest=digest,
        settings_schema=schema,
        state_shape=shape(_fold(loaded, defaults)) if loaded.declaration.kind.state_in_topic else None,
        schemas=list(dict.fromkeys(schema.id for schema in (*packaged(), *loaded.stream.schemas))),
    )


def as_json(settings: Settings) -> dict[str, Any]:
    """The values as JSON types that `detector_settings` reads; durations as people write them."""
    values = settings.model_dump(include=set(type(settings).model_fields))  # not what is computed of them
    found: dict[str, Any] = json.loads(json.dumps(sets_in_order(values), default=_json_value))
    return found


def _json_value(value: object) -> Any:
    return text_of(value) if isinstance(value, timedelta) else to_jsonable_python(value)


def _schema(defaults: Settings) -> dict[str, Any]:
    """The JSON schema, with the defaults in the form in which they are set."""
    found = type(defaults).model_json_schema(by_alias=False)
    for name, value in as_json(defaults).items():
        found["properties"][name]["default"] = value
    return found


def _fold(loaded: LoadedDetector, settings: Settings) -> Fold[Any]:
    """The fold that the detector makes of an empty table."""
    from lozenge.spark import kafka_source

    fold = dry_plan.detected(
        loaded, settings, _taken(loaded), lambda spark: spark.createDataFrame([], kafka_source.RECORDS)
    )
    assert isinstance(fold, Fold)  # the only result that fits a stateful detector
    return fold


def _check_realtime(loaded: LoadedDetector, settings: Settings) -> None:
    """Raises DetectorError if the detector's query over a stream cannot run in Real-Time Mode."""
    from lozenge.job.query.plan_checks import check_realtime

    with tempfile.TemporaryDirectory() as folder:
        result = dry_plan.detected(loaded, settings, _taken(loaded), dry_plan.stream_of(folder))
        check_realtime(loaded.name, loaded.declaration, expressions(result), single_stream=True)


def _taken(loaded: LoadedDetector) -> ReferenceTables:
    tables = ReferenceTables(loaded.declaration.tables, loaded.folder)
    tables.take()
    return tables


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--settings", help="overrides to try, as a JSON object")


def _results(loaded: LoadedDetector, given: argparse.Namespace) -> Iterator[Mapping[str, Any]]:
    if given.settings is None:
        yield describe(loaded).model_dump(mode="json")
    else:
        settings = detector_settings(loaded, parse_overrides(given.settings))
        unplanned = dry_plan.check(loaded, settings)
        yield {"settings": as_json(settings), "settings_digest": settings.digest, "unplanned": unplanned}


def main() -> int:
    """Runs the command; returns the exit code."""
    return command.main("describe", __doc__, _results, _arguments)


if __name__ == "__main__":
    end(main())
