"""What `detect()` may return, by the declared kind of its detector."""

from typing import Any

from pyspark.sql import DataFrame

from lozenge.detector.fold import Fold
from lozenge.detector.manifest import Manifest
from lozenge.errors import DetectorError

_ALERT = ("entity", "dedup_key", "event_time", "closes", "reason", "score", "evidence", "values", "labels")
"""Of the columns that `alert(...)` makes, those that nobody makes by accident."""


def refuse_misfit(name: str, declaration: Manifest, result: object) -> "DataFrame | Fold[Any]":
    """`result`, if it is what the declared kind takes; else raises DetectorError."""
    if not isinstance(result, DataFrame | Fold):
        raise DetectorError(
            f"planning {name}: detect() returned {type(result).__name__}, neither a DataFrame nor a fold",
            hint="end it with return events.where(...).select(*alert(...)), or return fold(...)",
        )
    if isinstance(result, Fold) != (declaration.kind == "stateful"):
        raise DetectorError(
            f'planning {name}: detect() returned a {type(result).__name__}, but kind = "{declaration.kind}"',
            hint='in [tool.lozenge], a fold is of kind = "stateful", and nothing else is',
        )
    if isinstance(result, DataFrame) and (missing := [c for c in _ALERT if c not in result.columns]):
        raise DetectorError(
            f"planning {name}: detect() returned a DataFrame that is none of alerts: it lacks {', '.join(missing)}",
            hint="end it with .select(*alert(reason=...))",
        )
    return result
