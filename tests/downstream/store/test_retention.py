"""What is expired is deleted in steps; what is still needed stays."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy import Engine, event

from lozenge_downstream.model import ReceivedRecord
from lozenge_downstream.store import Retention
from lozenge_downstream.store.deliveries import Attempt
from lozenge_downstream.store.tables import SENT, metadata
from tests.downstream.conftest import Desk
from tests.downstream.store.probes import delete_expired

MakeRecord = Callable[..., ReceivedRecord]


def kept(desk: Desk) -> dict[str, int]:
    """Of each table the rows."""
    with desk.store.reading() as t:
        return {
            name: t._connection.execute(sql.select(sql.func.count()).select_from(table)).scalar_one()
            for name, table in metadata.tables.items()
        }


def publish(desk: Desk) -> None:
    with desk.store.transaction() as t:
        for row in t.outbox.pending(100):
            t.outbox.published((row.topic, row.partition), row.seq)


def deliver(desk: Desk, first: int) -> list[str]:
    """Ends the `first` deliveries that are due; the ids of their notifications."""
    with desk.store.transaction() as t:
        due = t.deliveries.due("ops", first)
        t.deliveries.settle([Attempt(delivery, SENT, desk.now) for delivery in due])
    return [delivery.notification_id for delivery in due]


def test_deletion_keeps_what_is_not_delivered_yet(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route={"channels": ["ops"]})
    ids = [a.alert.id for a in desk.take(record(0), record(1)) if a.alert]
    desk.now += 5000
    publish(desk)
    deliver(desk, 1)
    desk.now += 1
    desk.take(record(2))
    delete_expired(desk)
    with desk.store.reading() as t:
        assert len(t.received_alerts.seen(ids)) == 0
        (due, _) = t.deliveries.due("ops", 10)
        assert t.outbox.by_id(due.notification_id).id == due.notification_id
        assert t.deliveries.orphans(["chat"]) == {"ops": 2}
        assert [row.seq for row in t.outbox.pending(10)] == [2], "Kafka does not have it yet"


def test_a_notification_is_deleted_with_the_last_of_its_deliveries(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route={"channels": ["ops"]})
    desk.take(record(0))
    publish(desk)
    desk.now += 5000
    (delivered,) = deliver(desk, 1)
    delete_expired(desk)
    with desk.store.reading() as t:
        assert t.outbox.by_id(delivered).id == delivered
        assert len(t.deliveries.of([delivered])) == 1
    desk.now += 1
    delete_expired(desk)
    assert (kept(desk)["outbox"], kept(desk)["deliveries"]) == (0, 0)


def test_deletion_keeps_open_cases_and_the_ids_of_received_alerts(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route={"group_by": ["entity"], "resolve_timeout": "7d"}, rate_limit={"alerts": 3})
    desk.take(*(record(number) for number in range(4)))
    desk.later(6 * 86_400)
    delete_expired(desk)
    with desk.store.reading() as t:
        assert t.received_alerts.rate_limited() == {"large_amount": 1}
    assert [a.outcome for a in desk.take(record(0), record(3))] == ["duplicate", "duplicate"]
    desk.later(86_400)
    delete_expired(desk)
    assert (kept(desk)["cases"], kept(desk)["case_alerts"]) == (2, 4), (
        "what ended just now, with the alarm of rate_limit"
    )
    desk.now += 1
    delete_expired(desk)
    assert (kept(desk)["cases"], kept(desk)["case_alerts"]) == (0, 0)
    assert [a.outcome for a in desk.take(record(0), record(3))] == ["accepted", "duplicate"], "rate_limited alerts stay"


def test_deletion_goes_in_steps_between_which_others_write(desk: Desk, record: MakeRecord) -> None:
    desk.routing(
        route={"group_by": ["entity"], "resolve_timeout": "1s", "channels": ["ops"]}, rate_limit={"alerts": 1000}
    )
    desk.take(*(record(number) for number in range(20)))
    publish(desk)
    deliver(desk, 20)
    desk.later(5)
    desk.now += 5
    retention, number = Retention(desk.now, 3), 20
    while True:
        before = kept(desk)
        with desk.store.transaction(exclusive=True) as t:
            more = t.delete_expired(retention)
        assert all(before[name] - rows <= 3 for name, rows in kept(desk).items())
        if not more:
            break
        desk.take(record(number))
        number += 1
    publish(desk)
    assert number > 30
    with desk.store.reading() as t:
        assert len(t.deliveries.due("ops", 100)) == kept(desk)["outbox"]
    assert kept(desk)["received_alerts"] == number - 20


def test_no_step_of_deletion_reads_the_whole_store(tmp_path: Path, record: MakeRecord) -> None:
    file = tmp_path / "store.db"
    desk = Desk(f"sqlite:///{file}")
    desk.take(record(0))
    publish(desk)
    desk.now += 5
    statements: list[tuple[str, Any]] = []
    event.listen(Engine, "before_cursor_execute", note := lambda *called: statements.append(called[2:4]))
    delete_expired(desk)
    event.remove(Engine, "before_cursor_execute", note)
    desk.store.close()
    with sqlite3.connect(file) as connection:
        plans = [
            plan
            for statement, values in statements
            if " silences" not in statement and not statement.startswith("BEGIN")
            for (*_, plan) in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)
        ]
    connection.close()
    assert {table for table in metadata.tables if any(f"SEARCH {table} " in plan for plan in plans)} >= {
        "outbox", "deliveries", "cases", "case_alerts", "received_alerts", "mutes", "inhibitors",
    }  # fmt: skip
    assert not [plan for plan in plans if plan.startswith("SCAN")]
