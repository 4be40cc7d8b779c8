"""Reading the text of a physical plan."""

from lozenge.spark.internals.plans import operators_above_sources

EXPLAINED = """== Physical Plan ==
* Project (6)
+- BroadcastHashJoin LeftOuter BuildRight (5)
   :- * Filter (2)
   :  +- StreamingRelation (1)
   +- BroadcastExchange (4)
      +- Scan csv  (3)


(1) StreamingRelation
Output: Aggregate (not an operator)
"""


def test_only_operators_between_a_source_and_the_end_are_the_streams() -> None:
    assert set(operators_above_sources(EXPLAINED)) == {"Project", "BroadcastHashJoin", "Filter", "StreamingRelation"}


def test_a_plan_without_a_stream_has_none() -> None:
    assert list(operators_above_sources("== Physical Plan ==\n* Project (2)\n+- Scan csv  (1)\n")) == []
