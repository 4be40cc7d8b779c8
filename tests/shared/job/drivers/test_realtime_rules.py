"""A rule in Real-Time Mode: Spark publishes, and what was published before its start is skipped by id."""

from collections.abc import Collection
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from lozenge.errors import BrokerUnavailable
from lozenge.job.batch_result import BatchResult
from lozenge.job.drivers import realtime_rules
from lozenge.job.drivers.driver import QueryPlan
from lozenge.job.drivers.realtime_rules import RulePublisher
from lozenge.job.query.alert_columns import ALERT_ID
from lozenge.spark.kafka_sink import COLUMNS, UNBATCHED
from lozenge.spark.query_progress import TriggerProgress
from tests.shared.job.drivers.scripted import IDENTITY, KAFKA, ScriptedOperator, ScriptedQuery


class Rows:
    """The rows of alerts; `skipped` are the ids of those that are not among them."""

    def __init__(self, skipped: Collection[str | None] = ()) -> None:
        self.skipped = skipped
        self.observed = ""
        self.columns: tuple[str, ...] = ()

    def join(self, known: pa.Table, column: str, how: str) -> "Rows":
        assert (column, how) == (ALERT_ID, "left_anti")
        return Rows(known[column].to_pylist())

    def observe(self, name: str, *counts: object) -> "Rows":
        self.observed = name
        return self

    def select(self, *columns: str) -> "Rows":
        self.columns = columns
        return self


class Committer:
    """Knows which alerts are published, once it has read them."""

    def __init__(self, calls: list[str], *published: str) -> None:
        self._calls, self._published = calls, frozenset(published)
        self.error: Exception | None = None

    def published_ids(self) -> frozenset[str]:
        self._calls.append("read the published alerts")
        if self.error is not None:
            raise self.error
        return self._published


class Producer:
    """The producer of one query's sink."""

    def __init__(self, calls: list[str], options: dict[str, str]) -> None:
        self._calls, self.options = calls, options
        calls.append("open a producer")

    def close(self) -> None:
        self._calls.append("close the producer")


class Rule:
    """A publisher, and what it was asked, in order."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        patch.setattr(realtime_rules, "SinkProducer", lambda _, name, options: Producer(self.calls, options))
        patch.setattr(realtime_rules, "F", SimpleNamespace(broadcast=lambda rows: rows, col=lambda name: name))
        patch.setattr(realtime_rules, "latency_counts", lambda column: [])
        spark: Any = SimpleNamespace(createDataFrame=lambda table: table)
        builder: Any = SimpleNamespace(alert_rows=lambda frame: Rows())
        self.publisher = RulePublisher(IDENTITY, KAFKA, spark, builder)

    def begin(self, *published: str) -> Any:
        return self.publisher.begin(plan(Committer(self.calls, *published)))


def plan(committer: Any) -> QueryPlan:
    operator: Any = ScriptedOperator()
    return QueryPlan(operator, {0: 0}, timedelta(minutes=1), committer)


@pytest.fixture
def rule(monkeypatch: pytest.MonkeyPatch) -> Rule:
    return Rule(monkeypatch)


def test_the_producer_of_the_query_before_is_closed_before_the_recovery_read(rule: Rule) -> None:
    rule.begin()
    rule.calls.clear()
    rule.begin()
    assert rule.calls.index("close the producer") < rule.calls.index("read the published alerts")


def test_a_recovery_read_that_fails_lets_nothing_start(rule: Rule) -> None:
    committer = Committer(rule.calls)
    committer.error = BrokerUnavailable("nobody answers")
    with pytest.raises(BrokerUnavailable):
        rule.publisher.begin(plan(committer))
    rule.publisher.stopped()
    assert rule.calls[-1] == "close the producer"


def test_alerts_published_before_are_not_among_the_rows(rule: Rule) -> None:
    assert sorted(rule.begin("a", "b").rows.skipped) == ["a", "b"]


def test_without_published_alerts_the_query_joins_nothing(rule: Rule) -> None:
    assert rule.begin().rows.skipped == ()


def test_a_warm_up_has_the_plan_of_a_query_that_skips(rule: Rule) -> None:
    operator: Any = ScriptedOperator()
    rows: Any = rule.publisher.warm_up_rows(operator)
    assert rows.skipped == [""]
    assert "open a producer" not in rule.calls, "its rows are discarded"


def test_rows_are_sent_one_by_one_with_the_columns_of_the_sink(rule: Rule) -> None:
    written = rule.begin()
    assert written.options.items() >= UNBATCHED.items()
    assert written.rows.columns == COLUMNS


def test_an_ended_query_sends_nothing_more(rule: Rule) -> None:
    rule.publisher.stopped()
    rule.begin()
    rule.publisher.stopped()
    rule.publisher.stopped()
    assert rule.calls.count("close the producer") == 1


def test_a_batch_has_changes_where_it_has_read_events(rule: Rule) -> None:
    assert rule.publisher.has_changes({0: 6, 1: 5}, {0: 5, 1: 5})
    assert not rule.publisher.has_changes({0: 5, 1: 5}, {0: 5, 1: 5})


def test_an_ended_batch_has_what_spark_has_counted(rule: Rule) -> None:
    query = ScriptedQuery()
    times = [{"item": 12, "count": 3}, {"item": None, "count": 1}]
    query.trigger(0, {0: 5}, counts={"count": 4, "times": times})
    batch = rule.publisher.ended(TriggerProgress(1, 0, query.recentProgress[0]))
    assert (batch.failures, batch.emitted, batch.latencies) == (BatchResult([]), 4, [(3, 0.012)])


def test_no_alert_passes_through_python(rule: Rule) -> None:
    rule.begin()
    assert [*rule.publisher.poll(0), *rule.publisher.rest()] == []
