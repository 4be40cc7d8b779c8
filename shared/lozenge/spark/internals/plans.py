"""The plans of a DataFrame: their operators, and whether Spark can run them as a stream."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from pyspark.sql import DataFrame

from lozenge.spark.internals.driver_jvm import java
from lozenge.spark.internals.scala import items


@dataclass(frozen=True)
class LogicalNode:
    """An operator of a stream's logical plan, with those of its inputs that are streams too."""

    name: str
    inputs: tuple["LogicalNode", ...]

    def walk(self) -> Iterator["LogicalNode"]:
        """Itself and all below it."""
        yield self
        for node in self.inputs:
            yield from node.walk()


def logical_plan(stream: DataFrame) -> LogicalNode:
    """The analysed plan of a stream. Assumes that Spark gives its tree, and the names of its operators."""
    return _logical_node(cast(Any, stream)._jdf.queryExecution().analyzed())


def _logical_node(node: Any) -> LogicalNode:
    return LogicalNode(
        str(node.nodeName()), tuple(_logical_node(child) for child in items(node.children()) if child.isStreaming())
    )


def check_streamable(stream: DataFrame) -> None:
    """Raises Spark's AnalysisException if a stream that appends rows could not be started.

    Assumes the object by which Spark checks a plan when a query starts.
    """
    jvm = java(stream.sparkSession)
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    append = jvm.org.apache.spark.sql.streaming.OutputMode.Append()
    checker.checkForStreaming(cast(Any, stream)._jdf.queryExecution().analyzed(), append)


_SOURCE = "StreamingRelation"
_LINE = re.compile(r"(?P<indent>[\s:|]*(?:[+:]- )?)(?:\* )?(?P<operator>\w+)")


def physical_operators(stream: DataFrame) -> set[str]:
    """Names of the operators that rows pass between a stream's sources, these included, and its end.

    Spark gives the physical plan of a stream that has not been started as text alone. Assumes the form of that text:
    the tree comes first, indented by depth, and a source is called StreamingRelation.
    """
    jvm = java(stream.sparkSession)
    formatted = jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted")
    return set(operators_above_sources(cast(Any, stream)._jdf.queryExecution().explainString(formatted)))


def operators_above_sources(explained: str) -> Iterator[str]:
    """Of a formatted plan's text, the operators on the paths from its streaming sources to its root."""
    tree = explained.split("== Physical Plan ==")[-1].strip("\n").split("\n\n")[0]
    path: list[tuple[int, str]] = []
    for found in map(_LINE.match, tree.splitlines()):
        assert found is not None, f"not a plan: {tree}"
        depth = len(found["indent"])
        path = [(d, operator) for d, operator in path if d < depth] + [(depth, found["operator"])]
        if found["operator"] == _SOURCE:
            yield from (operator for _, operator in path)
