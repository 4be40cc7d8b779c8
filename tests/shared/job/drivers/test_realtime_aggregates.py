"""An aggregate in Real-Time Mode: rows become alerts once, and a batch ends with all that it has to publish."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from lozenge.errors import BrokerUnavailable, Flood
from lozenge.job.batch_result import BatchResult
from lozenge.job.drivers import realtime_aggregates
from lozenge.job.drivers.driver import AlertsDrafted, QueryPlan
from lozenge.job.drivers.realtime_aggregates import AggregatePublisher
from lozenge.job.operators.aggregate_operator import AggregateOperator
from lozenge.job.operators.emitted_alerts import EmittedAlerts
from lozenge.spark.kafka_sink import UNBATCHED
from lozenge.spark.query_progress import TriggerProgress
from tests.shared.job.alert_rows import GROUP_ROW
from tests.shared.job.drivers.scripted import IDENTITY, KAFKA

FRAME: Any = "the alerts"
TRIGGER: Any = TriggerProgress(1, 0, FRAME)


class Row:
    """A row for each change of the group of `card`; `decoded` is how often it was decoded."""

    def __init__(self, card: str, key: str = "0/3", **columns: Any) -> None:
        self.alert_id = IDENTITY.alert_id(card, key)
        self.decoded = 0
        self._columns = GROUP_ROW | {"entity": card, "dedup_key": key} | columns

    def columns(self) -> Mapping[str, Any]:
        self.decoded += 1
        return self._columns


def bad(card: str, offset: int | None = None) -> Row:
    """A row that is no alert, of a group or of the event at an offset."""
    trigger = {"partition": 0, "offset": offset} if offset is not None else None
    return Row(card, event_time=None, trigger=trigger)


class Changelog:
    """The rows that come `soon`, and what is `acknowledged` by the end of a batch, in parts. Waiting takes no time."""

    def __init__(self, calls: list[str]) -> None:
        self._calls = calls
        self.soon: list[list[Row]] = []
        self.acknowledged: list[list[Row]] = []
        self.tokens = 0
        self.now = 0.0

    def begin(self) -> str:
        self._calls.append("new token")
        self.tokens += 1
        return f"token {self.tokens}"

    def read(self, seconds: float) -> list[Row]:
        if self.soon:
            return self.soon.pop(0)
        self.now += seconds
        return []

    def rest(self) -> Iterator[list[Row]]:
        while self.acknowledged:
            yield self.acknowledged.pop(0)

    def close(self) -> None:
        self._calls.append("close")


class Committer:
    """Skips what was published before."""

    def __init__(self, calls: list[str]) -> None:
        self._calls = calls
        self.error: Exception | None = None

    def skip_published(self) -> None:
        if self.error is not None:
            raise self.error
        self._calls.append("skip published")


class Aggregate:
    """A publisher whose query has begun, with its changelog."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.changelog, self.committer = Changelog(self.calls), Committer(self.calls)
        patch.setattr(realtime_aggregates, "AggregateChangelog", lambda *_: self.changelog)
        patch.setattr(realtime_aggregates, "time", SimpleNamespace(monotonic=lambda: self.changelog.now))
        patch.setattr(realtime_aggregates, "changelog_rows", lambda alerts, identity, token: (alerts, token))
        self.publisher = AggregatePublisher(IDENTITY, KAFKA)
        self.operator = AggregateOperator(FRAME, EmittedAlerts(IDENTITY, KAFKA.partitions))
        self.written = self.begin()

    def begin(self) -> Any:
        committer: Any = self.committer
        return self.publisher.begin(QueryPlan(self.operator, {0: 0}, timedelta(minutes=1), committer))

    def poll(self, *parts: list[Row]) -> list[str]:
        self.changelog.soon += parts
        return cards(self.publisher.poll(1.0))

    def ended(self) -> BatchResult:
        return self.publisher.ended(TRIGGER).failures


def cards(drafted: Iterator[AlertsDrafted]) -> list[str]:
    return [f"{alert.entity} {alert.dedup_key}" for event in drafted for alert in event.alerts]


@pytest.fixture
def aggregate(monkeypatch: pytest.MonkeyPatch) -> Aggregate:
    return Aggregate(monkeypatch)


def test_what_was_published_before_is_known_before_the_first_row_is_read(aggregate: Aggregate) -> None:
    assert aggregate.calls == ["skip published", "new token"]


def test_a_recovery_read_that_fails_lets_nothing_start(aggregate: Aggregate) -> None:
    aggregate.committer.error = BrokerUnavailable("nobody answers")
    with pytest.raises(BrokerUnavailable):
        aggregate.begin()
    assert aggregate.calls.count("new token") == 1


def test_each_query_writes_rows_with_a_token_of_its_own_one_by_one(aggregate: Aggregate) -> None:
    assert aggregate.written.rows == (FRAME, "token 1")
    assert aggregate.begin().rows == (FRAME, "token 2")
    assert aggregate.written.options.items() >= UNBATCHED.items()


def test_nobody_reads_the_rows_of_a_warm_up(aggregate: Aggregate) -> None:
    rows: Any = aggregate.publisher.warm_up_rows(aggregate.operator)
    assert rows == (FRAME, "")


def test_a_row_becomes_an_alert_once_however_often_its_group_changes(aggregate: Aggregate) -> None:
    again = Row("a")
    assert aggregate.poll([Row("a"), Row("b")], [again, Row("a", "0/5")]) == ["a 0/3", "b 0/3", "a 0/5"]
    assert again.decoded == 0, "a row of an emitted alert is dropped undecoded"


def test_the_rest_of_a_batch_is_every_acknowledged_row(aggregate: Aggregate) -> None:
    aggregate.changelog.acknowledged = [[Row("a")], [], [Row("b")]]
    assert cards(aggregate.publisher.rest()) == ["a 0/3", "b 0/3"]


def test_every_batch_is_committed_with_events_or_without(aggregate: Aggregate) -> None:
    assert aggregate.publisher.has_changes({0: 5}, {0: 5})


def test_a_failure_is_one_of_its_batch_however_often_its_group_changes(aggregate: Aggregate) -> None:
    aggregate.poll([bad("a"), bad("a"), bad("b", 7)], [bad("a"), bad("b", 7), bad("c", 8)])
    failures = aggregate.ended()
    assert [record.position for record in failures.failed_records] == [(0, 7), (0, 8)]
    assert [failure.cause for failure in failures.failures_without_record] == ["group/a"]
    assert failures.alerts == []


def test_the_next_batch_begins_without_failures(aggregate: Aggregate) -> None:
    aggregate.poll([bad("a")])
    aggregate.ended()
    assert aggregate.ended() == BatchResult([], [], [])


def test_the_next_query_begins_without_the_failures_of_a_batch_that_did_not_end(aggregate: Aggregate) -> None:
    aggregate.poll([bad("a")])
    aggregate.begin()
    assert aggregate.ended() == BatchResult([], [], [])


def test_too_many_failures_in_one_batch_are_a_fault_of_the_detector(aggregate: Aggregate) -> None:
    with pytest.raises(Flood):
        aggregate.poll([bad(f"card_{n}") for n in range(10)])


def test_failures_among_many_good_rows_are_none(aggregate: Aggregate) -> None:
    aggregate.poll([Row(f"card_{n}") for n in range(10)], [bad(f"bad_{n}") for n in range(10)])
    assert len(aggregate.ended().failures_without_record) == 10


def test_the_end_closes_the_connections(aggregate: Aggregate) -> None:
    aggregate.publisher.stopped()
    aggregate.publisher.close()
    assert aggregate.calls[-1] == "close"
