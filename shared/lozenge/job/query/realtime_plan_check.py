"""Refuses plans that Real-Time Mode cannot run, before any query is started."""

import re
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from lozenge.detector.manifest import Manifest
from lozenge.errors import DetectorError

_SOURCE = "StreamingRelation"
_ALLOWED = {_SOURCE, "AdaptiveSparkPlan", "BroadcastHashJoin", "Expand", "Filter", "Generate", "Project"}
"""What a rule may need of Spark 4.3's list for Real-Time Mode; where the plan may change as it runs is no operator."""
_COUNTING = {"EventTimeWatermark", "Exchange", "StateStoreRestore", "StateStoreSave"}
_COUNTING |= {"HashAggregate", "ObjectHashAggregate", "SortAggregate", "Sort", "Union"}
"""What an aggregate may need besides; the union is of its partitions. Spark then has one operator in place of the
aggregates here and of the sorts that one of them needs; it refuses any other sort of a stream itself."""
_PYTHON = "a Python function holds rows back: write it with column expressions"
_SESSION = "a session window is open while events come: take F.window"
_REPEATED = "leave repeated events to the aggregate: F.collect_set takes each id once"
_HINTS = {
    "ArrowEvalPython": _PYTHON,
    "BatchEvalPython": _PYTHON,
    "MapInArrow": _PYTHON,
    "MapInPandas": _PYTHON,
    "SortMergeJoin": "wrap the table that is joined in F.broadcast(...)",
    "BroadcastNestedLoopJoin": "join on equal columns",
    "Union": "a detector has one stream, and Spark takes no stream twice: put its conditions into one where(... | ...)",
    "Sort": "there is no order without a batch: leave it out",
    "MergingSessions": _SESSION,
    "SessionWindowStateStoreRestore": _SESSION,
    "SessionWindowStateStoreSave": _SESSION,
    "StreamingDeduplicate": _REPEATED,
    "StreamingDeduplicateWithinWatermark": _REPEATED,
    "Window": "a window function needs a batch: leave it out, or use a fold",
}
_LINE = re.compile(r"(?P<indent>[\s:|]*(?:[+:]- )?)(?:\* )?(?P<operator>\w+)")


def refuse_ineligible(name: str, declaration: Manifest, frame: DataFrame, *, of_one: bool = False) -> None:
    """Raises DetectorError with every operator in the physical plan of the stream `frame` that needs a batch.

    `of_one` says that the detector was given one stream; an aggregate may also be given a union of several.
    """
    allowed = _ALLOWED | (_COUNTING if declaration.kind == "aggregate" else set())
    if of_one:
        allowed -= {"Union"}
    wrong = sorted(set(_operators(frame)) - allowed)
    if wrong:
        hints = dict.fromkeys(_HINTS[operator] for operator in wrong if operator in _HINTS)
        raise DetectorError(
            f'planning {name}: mode = "realtime" cannot run {", ".join(wrong)}',
            hint="; ".join([*hints, 'or leave out mode = "realtime": batch by batch everything runs']),
        )


def _operators(frame: DataFrame) -> Iterator[str]:
    """The operators that rows pass between the stream's sources and its end.

    Spark gives the physical plan of a stream that has not been started as text alone: the tree comes first in it.
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
