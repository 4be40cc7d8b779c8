"""Checks of what `detect()` returned, before a query is started. A check raises DetectorError with a hint.

- `checked_result`: the result fits the declared kind.
- `check_streamable`: Spark can run it as a stream.
- `check_stateless`: Spark keeps no state for it. The checkpoint of a rule or a fold is deleted at every start, because
  Kafka holds all that matters. Spark's state would be lost there without an error.
- `check_realtime`: Real-Time Mode can run its physical plan.
"""

import re
from collections.abc import Iterator
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from lozenge.detector.fold import Fold
from lozenge.detector.manifest import Manifest
from lozenge.errors import DetectorError, first_line

_ALERT = ("entity", "dedup_key", "event_time", "closes", "reason", "score", "evidence", "values", "labels")
"""Columns of `alert(...)` by which a DataFrame of alerts is recognised."""

_STATEFUL = ("Aggregate", "Deduplicate", "Distinct", "FlatMapGroups", "GlobalLimit", "TransformWithState")
"""How the names of logical operators with state begin."""

_SOURCE = "StreamingRelation"
_REALTIME = {_SOURCE, "AdaptiveSparkPlan", "BroadcastHashJoin", "Expand", "Filter", "Generate", "Project"}
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
_LINE = re.compile(r"(?P<indent>[\s:|]*(?:[+:]- )?)(?:\* )?(?P<operator>\w+)")


def checked_result(name: str, manifest: Manifest, result: object) -> "DataFrame | Fold[Any]":
    """`result`, if it fits the declared kind."""
    if not isinstance(result, DataFrame | Fold):
        raise DetectorError(
            f"planning {name}: detect() returned {type(result).__name__}, neither a DataFrame nor a fold",
            hint="end it with return events.where(...).select(*alert(...)), or return fold(...)",
        )
    if isinstance(result, Fold) != (manifest.kind == "stateful"):
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
    jvm: Any = frame.sparkSession._jvm
    plan: Any = frame._jdf.queryExecution()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    append = jvm.org.apache.spark.sql.streaming.OutputMode.Append()
    try:
        checker.checkForStreaming(plan.analyzed(), append)
    except AnalysisException as error:
        raise DetectorError(
            f"planning {name}: Spark cannot run it as a stream: {first_line(error)}",
            hint='use column expressions and joins with tables; to group or count, declare kind = "aggregate"',
        ) from error


def check_stateless(name: str, frame: DataFrame) -> None:
    """Raises if the logical plan of the streaming `frame` keeps state between batches."""
    plan: Any = frame._jdf.queryExecution()
    kinds = sorted(set(_stateful_operators(plan.analyzed())))
    if kinds:
        raise DetectorError(
            f"planning {name}: its expressions keep state in Spark ({', '.join(kinds)}), which is lost at a restart",
            hint='to count or group declare kind = "aggregate"; for state per key, kind = "stateful" with a fold',
        )


def check_realtime(name: str, manifest: Manifest, frame: DataFrame, *, single_stream: bool = False) -> None:
    """Raises with every operator in the physical plan of the streaming `frame` that needs a batch.

    An aggregate may read a union of its partitions, unless the frame was made of a `single_stream`.
    """
    allowed = _REALTIME | (_REALTIME_AGGREGATE if manifest.kind == "aggregate" else set())
    if single_stream:
        allowed -= {"Union"}
    unsupported = sorted(set(_physical_operators(frame)) - allowed)
    if unsupported:
        hints = dict.fromkeys(_HINTS[operator] for operator in unsupported if operator in _HINTS)
        raise DetectorError(
            f'planning {name}: mode = "realtime" cannot run {", ".join(unsupported)}',
            hint="; ".join([*hints, 'or remove mode = "realtime": batches can run every operator']),
        )


def _stateful_operators(node: Any) -> Iterator[str]:
    if not node.isStreaming():
        return
    children = [node.children().apply(i) for i in range(node.children().size())]
    kind = node.nodeName()
    if kind.startswith(_STATEFUL):
        yield kind
    if kind.startswith("Join") and sum(child.isStreaming() for child in children) > 1:
        yield "Join of two streams"
    for child in children:
        yield from _stateful_operators(child)


def _physical_operators(frame: DataFrame) -> Iterator[str]:
    """The operators between the stream's sources and its end.

    Spark gives the physical plan of a stream that has not been started as text only. The tree comes first in the text.
    """
    jvm: Any = frame.sparkSession._jvm
    query: Any = frame._jdf.queryExecution()
    text = query.explainString(jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted"))
    tree = text.split("== Physical Plan ==")[-1].strip("\n").split("\n\n")[0]
    above: list[tuple[int, str]] = []
    for line in tree.splitlines():
        found = _LINE.match(line)
        assert found is not None, f"not a line of a plan: {line}"
        depth = len(found["indent"])
        above = [(d, operator) for d, operator in above if d < depth] + [(depth, found["operator"])]
        if found["operator"] == _SOURCE:
            yield from (operator for _, operator in above)
