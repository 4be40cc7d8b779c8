"""An aggregate emits an alert for a row only while that alert is new."""

from typing import Any

import pyarrow as pa

from lozenge.contracts.topics import Topics
from lozenge.job.identity import Identity
from lozenge.job.operators.aggregate_operator import AggregateOperator
from lozenge.job.operators.emitted_alerts import EmittedAlerts
from tests.shared.job.alert_rows import GROUP_ROW
from tests.streams import AUTH

NO_FRAME: Any = None
"""The operator passes its DataFrame to Spark and evaluates only the rows that come back."""


def operator() -> AggregateOperator:
    identity = Identity("counts", "r1", live=True, key="card", topics=Topics(), stream=AUTH)
    return AggregateOperator(NO_FRAME, EmittedAlerts(identity, 4))


def batch(*keys: tuple[str, str]) -> pa.Table:
    """Rows of `lozenge.alert` columns, one for each entity and deduplication key."""
    return pa.Table.from_pylist([GROUP_ROW | {"entity": entity, "dedup_key": key} for entity, key in keys])


def emitted(aggregate: AggregateOperator, *keys: tuple[str, str]) -> list[tuple[str, str]]:
    return [(draft.entity, draft.dedup_key) for draft in aggregate.process(batch(*keys)).alerts]


def test_a_row_is_emitted_once_although_each_change_of_its_group_brings_it_again() -> None:
    aggregate = operator()
    assert emitted(aggregate, ("a", "0/3"), ("b", "0/3")) == [("a", "0/3"), ("b", "0/3")]
    assert emitted(aggregate, ("a", "0/3"), ("a", "0/5")) == [("a", "0/5")]


def test_an_emitted_alert_is_written_with_the_next_commit_alone() -> None:
    aggregate = operator()
    emitted(aggregate, ("a", "0/3"))
    assert len(aggregate.state_changes()) == 1
    assert aggregate.state_changes() == []


def test_the_operator_of_another_query_continues_with_the_adopted_state() -> None:
    first, second = operator(), operator()
    emitted(first, ("a", "0/3"))
    assert second.adopt_state(first) == 1
    assert emitted(second, ("a", "0/3"), ("b", "0/3")) == [("b", "0/3")]
