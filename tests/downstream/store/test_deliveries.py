"""Which deliveries are due, in which order, and what is kept of each attempt."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lozenge.contracts.topics import Topics
from lozenge_downstream.model import ReceivedRecord
from lozenge_downstream.store.deliveries import Attempt, Delivery
from lozenge_downstream.store.tables import DUE, FAILED, SENT
from tests.downstream.conftest import Desk
from tests.downstream.store.probes import delete_expired, due, executed

TOPICS = Topics()
MakeRecord = Callable[..., ReceivedRecord]


def settle(desk: Desk, state: str, error: str | None = None, *, later: float = 0.0, channel: str = "ops") -> str:
    """Ends an attempt of what has been due longest; its notification."""
    with desk.store.transaction() as t:
        delivery: Delivery = t.deliveries.due(channel, 1)[0]
        t.deliveries.settle([Attempt(delivery, state, desk.now + later, error)])
        return delivery.notification_id


def failures(desk: Desk, notification_id: str) -> list[dict[str, Any]]:
    """The attempts of a notification that failed."""
    with desk.store.reading() as t:
        found: list[dict[str, Any]] = t.alert_history._notification(notification_id)["failed_attempts"]
        return found


def notified_three_times(desk: Desk, record: MakeRecord) -> list[str]:
    """The notifications of one case, all due on two channels, in order."""
    desk.routing(route={"channels": ["ops", "chat"], "group_by": ["entity"], "group_interval": "1s"})
    for number in range(3):
        desk.take(record(number))
        desk.now += 1
    return [n["notification_id"] for n in desk.notifications()]


@pytest.mark.parametrize("end", [SENT, FAILED])
def test_a_delivery_that_another_notifier_has_ended_is_not_due_again(desk: Desk, record: MakeRecord, end: str) -> None:
    notified_three_times(desk, record)
    with desk.store.transaction() as t:
        [late] = t.deliveries.due("ops", 1)
    settle(desk, end, None if end == SENT else "HTTP 400")
    following = due(desk)
    with desk.store.transaction() as t:
        t.deliveries.settle([Attempt(late, DUE, desk.now, "HTTP 503")])
    assert due(desk) == following
    assert late.notification_id not in following


@pytest.mark.parametrize("end", [SENT, FAILED])
def test_of_a_case_a_channel_is_given_the_next_message_once_the_one_before_has_ended(
    desk: Desk, record: MakeRecord, end: str
) -> None:
    first, second, third = notified_three_times(desk, record)
    assert due(desk) == [first]
    assert settle(desk, DUE, "HTTP 500", later=60) == first
    assert due(desk) == [], "what follows waits as long as what is tried again"
    assert due(desk, "chat") == [first], "and so on no other channel"
    desk.now += 60
    for one in (first, second, third):
        assert due(desk) == [one]
        settle(desk, end, None if end == SENT else "HTTP 400")
    assert due(desk) == []


def test_a_message_of_a_case_that_is_being_retried_is_due_no_sooner(desk: Desk, record: MakeRecord) -> None:
    """Else a channel whose receiver is away for a day would be looked through in vain at every look."""
    notified_three_times(desk, record)
    settle(desk, DUE, "HTTP 500", later=600)
    desk.take(record(3))
    with desk.store.reading() as t:
        rows = t.deliveries.of([n["notification_id"] for n in desk.notifications()])
    assert {row["due_at"] for row in rows if row["channel"] == "ops"} == {desk.now + 600}


def test_messages_of_a_case_are_sent_again_in_order(desk: Desk, record: MakeRecord) -> None:
    ids = notified_three_times(desk, record)
    for _ in ids:
        settle(desk, SENT)
    with desk.store.transaction() as t:
        assert t.deliveries.again("ops", 1, None, TOPICS.notifications) == 2
    for one in ids[1:]:
        assert due(desk) == [one]
        settle(desk, SENT)
    assert due(desk) == []


def test_finding_due_deliveries_reads_only_the_previous_message_of_each_case(tmp_path: Path) -> None:
    """Else each message of a long case would cost more than the last."""
    statement = executed(f"sqlite:///{tmp_path / 'store.db'}", lambda t: t.deliveries.due("ops", 5), "SELECT")
    with sqlite3.connect(tmp_path / "store.db") as connection:
        plan = [row[-1] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", [None] * statement.count("?"))]
    connection.close()
    assert plan == [
        "SEARCH deliveries USING INDEX deliveries_due (channel=? AND due_at<?)",
        "SEARCH outbox USING INDEX ix_outbox_id (id=?)",
        "CORRELATED SCALAR SUBQUERY 1",
        "SEARCH before USING INDEX outbox_case (case_id=? AND row<?)",
        "SEARCH earlier USING INDEX sqlite_autoindex_deliveries_1 (channel=? AND notification_id=?)",
    ]


def test_each_failed_attempt_is_kept_until_it_expires(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route={"channels": ["ops"]})
    desk.take(record(0))
    for error in ("HTTP 500", "HTTP 503"):
        settle(desk, DUE, error)
        desk.now += 1
    id = settle(desk, SENT)
    noon = desk.now
    assert failures(desk, id) == [
        {"channel": "ops", "at": noon - 2, "error": "HTTP 500"},
        {"channel": "ops", "at": noon - 1, "error": "HTTP 503"},
    ]
    delete_expired(desk, before=noon - 1)
    assert [f["error"] for f in failures(desk, id)] == ["HTTP 503"]


def test_failed_messages_are_due_again_when_requested_and_no_others(desk: Desk, record: MakeRecord) -> None:
    first, _, third = notified_three_times(desk, record)
    settle(desk, FAILED, "HTTP 400")
    settle(desk, SENT)
    settle(desk, FAILED, "HTTP 400", channel="chat")
    with desk.store.transaction() as t:
        assert t.deliveries.retry_failed("ops") == 1
        assert t.deliveries.retry_failed("ops") == 0
    assert due(desk) == [third, first]
    assert {settle(desk, SENT), settle(desk, SENT)} == {third, first}
    assert due(desk) == []
    assert len(due(desk, "chat")) == 1
