"""Checks of what `detect()` returned, before a query is started. A check raises DetectorError with a hint.

- `checked_result`: the result fits the declared kind.
- `check_streamable`: Spark can run it as a stream.
- `check_stateless`: Spark keeps no state for it. The checkpoint of a rule or a fold is deleted at every start, because
  Kafka holds all that matters. Spark's state would be lost there without an error.
- `check_realtime`: Real-Time Mode can run its physical plan.
"""

from collections.abc import Iterator
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from lozenge.detector.fold import Fold
from lozenge.detector.manifest import Manifest
from lozenge.errors import DetectorError, first_line
from lozenge.spark.internals import plans

_ALERT = ("entity", "dedup_key", "event_time", "closes", "reason", "score", "evidence", "values", "labels")
"""Columns of `alert(...)` by which a DataFrame of alerts is recognised."""

_STATEFUL = ("Aggregate", "Deduplicate", "Distinct", "FlatMapGroups", "GlobalLimit", "TransformWithState")
"""How the names of logical operators with state begin."""

_REALTIME = {"StreamingRelation", "AdaptiveSparkPlan", "BroadcastHashJoin", "Expand", "Filter", "Generate", "Project"}
"""The operators of Spark 4.3's list for Real-Time Mode that a rule needs; AdaptiveSparkPlan wraps a plan."""
_REALTIME_AGGREGATE = {"EventTimeWatermark", "Exchange", "StateStoreRestore", "StateStoreSave"}
_REALTIME_AGGREGATE |= {"HashAggregate", "ObjectHashAggregate", "SortAggregate", "Sort", "Union"}
"""What an aggregate needs in addition. The union is of its partitions, the sort belongs to an aggregate.

Spark replaces both by one operator in Real-Time Mode, and rejects any other sort of a stream itself.
"""
_PYTHON = "a Python function holds rows until the batch ends: write it with column expressions"
_SESSION = "a session window stays open while events arrive: use F.window"
_REPEATED = "the aggregate can skip repeated events: F.collect_set takes each id once"
_HINTS = {
    "ArrowEvalPython": _PYTHON,
    "BatchEvalPython": _PYTHON,
    "MapInArrow": _PYTHON,
    "MapInPandas": _PYTHON,
    "SortMergeJoin": "wrap the joined table in F.broadcast(...)",
    "BroadcastNestedLoopJoin": "join on equal columns",
    "Union": "a detector has one stream, and Spark reads no stream twice: combine conditions in one where(... | ...)",
    "Sort": "a stream without batches has no order: remove the sort",
    "MergingSessions": _SESSION,
    "SessionWindowStateStoreRestore": _SESSION,
    "SessionWindowStateStoreSave": _SESSION,
    "StreamingDeduplicate": _REPEATED,
    "StreamingDeduplicateWithinWatermark": _REPEATED,
    "Window": "a window function needs a batch: remove it, or use a fold",
}


def checked_result(name: str, manifest: Manifest, result: object) -> "DataFrame | Fold[Any]":
    """`result`, if it fits the declared kind."""
    if not isinstance(result, DataFrame | Fold):
        raise DetectorError(
            f"planning {name}: detect() returned {type(result).__name__}, neither a DataFrame nor a fold",
            hint="end it with return events.where(...).select(*alert(...)), or return fold(...)",
        )
    if isinstance(result, Fold) != manifest.kind.state_in_topic:
        raise DetectorError(
            f'planning {name}: detect() returned a {type(result).__name__}, but kind = "{manifest.kind}"',
            hint='in [tool.lozenge], a detector that returns a fold has kind = "stateful", and no other has',
        )
    if isinstance(result, DataFrame) and (missing := [c for c in _ALERT if c not in result.columns]):
        raise DetectorError(
            f"planning {name}: detect() returned a DataFrame that holds no alerts: it lacks {', '.join(missing)}",
            hint="end it with .select(*alert(reason=...))",
        )
    return result


def check_streamable(name: str, frame: DataFrame) -> None:
    """Raises if Spark cannot run the streaming `frame` in append mode."""
    try:
        plans.check_streamable(frame)
    except AnalysisException as error:
        raise DetectorError(
            f"planning {name}: Spark cannot run it as a stream: {first_line(error)}",
            hint='use column expressions and joins with tables; to group or count, declare kind = "aggregate"',
        ) from error


def check_stateless(name: str, frame: DataFrame) -> None:
    """Raises if the logical plan of the streaming `frame` keeps state between batches."""
    kinds = sorted(set(_stateful_operators(plans.logical_plan(frame))))
    if kinds:
        raise DetectorError(
            f"planning {name}: its expressions keep state in Spark ({', '.join(kinds)}), which is lost at a restart",
            hint='to count or group declare kind = "aggregate"; for state per key, kind = "stateful" with a fold',
        )


def check_realtime(name: str, manifest: Manifest, frame: DataFrame, *, single_stream: bool = False) -> None:
    """Raises with every operator in the physical plan of the streaming `frame` that needs a batch.

    An aggregate may read a union of its partitions, unless the frame was made of a `single_stream`.
    """
    allowed = _REALTIME | (_REALTIME_AGGREGATE if manifest.kind.state_in_checkpoint else set())
    if single_stream:
        allowed -= {"Union"}
    unsupported = sorted(plans.physical_operators(frame) - allowed)
    if unsupported:
        hints = dict.fromkeys(_HINTS[operator] for operator in unsupported if operator in _HINTS)
        raise DetectorError(
            f'planning {name}: mode = "realtime" cannot run {", ".join(unsupported)}',
            hint="; ".join([*hints, 'or remove mode = "realtime": batches can run every operator']),
        )


def _stateful_operators(plan: plans.LogicalNode) -> Iterator[str]:
    for node in plan.walk():
        if node.name.startswith(_STATEFUL):
            yield node.name
        if node.name.startswith("Join") and len(node.inputs) > 1:
            yield "Join of two streams"
