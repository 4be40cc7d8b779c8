"""Refuses plans that would keep state in Spark where nothing of the platform could carry it on.

A rule's and a fold's checkpoint is thrown away at every start, for all that matters stands in Kafka.
An operator that remembers rows from batch to batch would forget them then, without a word.
"""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from lozenge.errors import DetectorError

_REMEMBERING = ("Aggregate", "Deduplicate", "Distinct", "FlatMapGroups", "GlobalLimit", "TransformWithState")


def refuse_state(name: str, frame: DataFrame) -> None:
    """Raises DetectorError if the streaming plan of `frame` remembers anything between batches."""
    plan: Any = frame._jdf.queryExecution()
    kinds = sorted(set(_remembering(plan.analyzed())))
    if kinds:
        raise DetectorError(
            f"planning {name}: its expressions keep state in Spark ({', '.join(kinds)}), which no restart carries on",
            hint='to count or group declare kind = "aggregate"; to remember per key, kind = "stateful" with a fold',
        )


def _remembering(node: Any) -> Iterator[str]:
    if not node.isStreaming():
        return
    children = [node.children().apply(i) for i in range(node.children().size())]
    kind = node.nodeName()
    if kind.startswith(_REMEMBERING):
        yield kind
    if kind.startswith("Join") and sum(child.isStreaming() for child in children) > 1:
        yield "Join of two streams"
    for child in children:
        yield from _remembering(child)
