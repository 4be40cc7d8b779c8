"""The store's promises: all or nothing, one position for all, known versions, clear refusals."""

import sqlite3
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql
from sqlalchemy import Engine, event

from lozenge.contracts.avro import Codec
from lozenge.contracts.topics import Topics
from lozenge.errors import ConfigError, Fatal, Fenced
from lozenge_downstream.model import Record
from lozenge_downstream.store import Retention, Store, StoreUnavailable, Transaction, database
from lozenge_downstream.store.deliveries import Attempt, Delivery
from lozenge_downstream.store.tables import DUE, FAILED, SENT, metadata
from tests.downstream.conftest import Desk
from tests.faults.disks import filled, small_disk

TOPICS = Topics()

MakeRecord = Callable[..., Record]
PLACE = TOPICS.alerts("large_amount"), 2


def test_seq_goes_on_without_a_gap_after_a_rollback(desk: Desk, record: MakeRecord) -> None:
    desk.take(record(0))
    with suppress(ZeroDivisionError), desk.store.transaction(exclusive=True) as t:
        desk.pipeline.receive(desk.pipeline.decode([record(1)]), t)
        raise ZeroDivisionError
    desk.take(record(2))
    assert [told["seq"] for told in desk.told()] == [0, 1]


def test_memory_outlives_the_process(url: str, record: MakeRecord) -> None:
    for outcome in ("accepted", "duplicate"):
        desk = Desk(url)
        (received,) = desk.take(record(0))
        assert received.outcome == outcome
        desk.store.close()


def test_a_position_is_moved_by_who_knows_it_alone(store: Store) -> None:
    with store.transaction() as t:
        t.positions.move(PLACE, None, 5)
        t.positions.move(PLACE, 5, 9)
    for known in (None, 5, 10):
        with pytest.raises(Fenced, match="another notifier has moved the position"), store.transaction() as t:
            t.positions.move(PLACE, known, 11)
    with store.reading() as t:
        assert t.positions.of(PLACE) == 9


def test_a_lease_is_one_holders_until_it_is_not_renewed(desk: Desk) -> None:
    def take(holder: str) -> bool:
        with desk.store.transaction() as t:
            return t.leases.take("relay", holder, 6.0)

    assert [take("a"), take("b"), take("a")] == [True, False, True]
    desk.now += 7
    assert [take("b"), take("a")] == [True, False]
    with desk.store.transaction() as t:
        t.leases.give_up("b")
    assert take("a")


def test_a_locked_store_says_so(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LOCK_SECONDS", 0.05)
    store = Store(url)
    holder = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="another program has locked the store"), store.transaction():
        pass
    holder.close()
    store.close()


def test_a_store_on_a_full_disk_is_to_be_tried_again(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    with small_disk(folder, 8) as refused:
        if refused:
            pytest.skip(f"this machine lets us mount nothing: {refused}")
        url = f"sqlite:///{folder / 'store.db'}"
        store = Store(url)
        with filled(folder), pytest.raises(StoreUnavailable, match="full") as caught, store.transaction() as t:
            t.positions.move(PLACE, None, 1)
        assert caught.value.exit_code == 3, "or whoever supervises it gives it up"
        with store.transaction() as t:
            t.positions.move(PLACE, None, 1)
        store.close()


def test_a_store_in_a_missing_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="its folder must exist"):
        Store(f"sqlite:///{tmp_path / 'nowhere' / 'store.db'}")


def test_a_file_that_is_no_database_says_so(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"no database" * 100)
    with pytest.raises(Fatal, match="file is not a database"):
        Store(f"sqlite:///{tmp_path / 'x.db'}")


def test_a_bad_url_hides_its_password() -> None:
    with pytest.raises(ConfigError) as caught:
        Store("nodatabase://user:hunter2@host/db")
    assert "hunter2" not in str(caught.value)


def test_a_missing_driver_is_to_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigError, match=r"opening the store: .*psycopg") as caught:
        Store("postgresql+psycopg://user:hunter2@host/db")
    assert "install its driver" in caught.value.hint
    assert "hunter2" not in str(caught.value)


def delete_expired(desk: Desk, step: int = 2, before: float | None = None) -> int:
    """Forgets what has ended before a moment, else until now; in how many transactions."""
    retention = Retention(desk.now if before is None else before, step)
    for number in count(1):
        with desk.store.transaction(exclusive=True) as t:
            if not t.delete_expired(retention):
                return number
    raise AssertionError


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
    """Ends the `first` deliveries that are due; which notifications those told."""
    with desk.store.transaction() as t:
        due = t.deliveries.due("ops", first)
        t.deliveries.settle([Attempt(delivery, SENT, desk.now) for delivery in due])
    return [delivery.notification_id for delivery in due]


def test_forgetting_keeps_what_is_on_its_way(desk: Desk, record: MakeRecord) -> None:
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


def test_a_notification_is_forgotten_with_the_last_of_its_deliveries(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route={"channels": ["ops"]})
    desk.take(record(0))
    publish(desk)
    desk.now += 5000
    (told,) = deliver(desk, 1)
    delete_expired(desk)
    with desk.store.reading() as t:
        assert t.outbox.by_id(told).id == told
        assert len(t.deliveries.of([told])) == 1
    desk.now += 1
    delete_expired(desk)
    assert (kept(desk)["outbox"], kept(desk)["deliveries"]) == (0, 0)


def test_forgetting_keeps_open_cases_and_what_makes_repeats_collapse(desk: Desk, record: MakeRecord) -> None:
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


def test_forgetting_goes_in_steps_between_which_others_write(desk: Desk, record: MakeRecord) -> None:
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


def test_no_step_of_forgetting_reads_the_whole_store(tmp_path: Path, record: MakeRecord) -> None:
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


def due(desk: Desk, channel: str = "ops") -> list[str]:
    """The notifications that may go to a channel now."""
    with desk.store.reading() as t:
        return [delivery.notification_id for delivery in t.deliveries.due(channel, 100)]


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


def told_three_times(desk: Desk, record: MakeRecord) -> list[str]:
    """The notifications of one case, all due on two channels, in the order in which they were told."""
    desk.routing(route={"channels": ["ops", "chat"], "group_by": ["entity"], "group_interval": "1s"})
    for number in range(3):
        desk.take(record(number))
        desk.now += 1
    return [told["notification_id"] for told in desk.told()]


@pytest.mark.parametrize("end", [SENT, FAILED])
def test_what_another_notifier_has_ended_meanwhile_is_not_due_again(desk: Desk, record: MakeRecord, end: str) -> None:
    told_three_times(desk, record)
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
    first, second, third = told_three_times(desk, record)
    assert due(desk) == [first]
    assert settle(desk, DUE, "HTTP 500", later=60) == first
    assert due(desk) == [], "what follows waits as long as what is tried again"
    assert due(desk, "chat") == [first], "and so on no other channel"
    desk.now += 60
    for one in (first, second, third):
        assert due(desk) == [one]
        settle(desk, end, None if end == SENT else "HTTP 400")
    assert due(desk) == []


def test_what_is_told_while_its_case_is_tried_again_is_due_no_sooner(desk: Desk, record: MakeRecord) -> None:
    """Else a channel whose receiver is away for a day would be looked through in vain at every look."""
    told_three_times(desk, record)
    settle(desk, DUE, "HTTP 500", later=600)
    desk.take(record(3))
    with desk.store.reading() as t:
        rows = t.deliveries.of([told["notification_id"] for told in desk.told()])
    assert {row["due_at"] for row in rows if row["channel"] == "ops"} == {desk.now + 600}


def test_messages_of_a_case_are_sent_again_in_the_order_in_which_they_were_told(desk: Desk, record: MakeRecord) -> None:
    told = told_three_times(desk, record)
    for _ in told:
        settle(desk, SENT)
    with desk.store.transaction() as t:
        assert t.deliveries.again("ops", 1, None, TOPICS.notifications) == 2
    for one in told[1:]:
        assert due(desk) == [one]
        settle(desk, SENT)
    assert due(desk) == []


def test_to_find_what_is_due_reads_of_each_case_what_was_told_just_before(tmp_path: Path) -> None:
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


def test_each_failed_attempt_is_kept_until_it_is_forgotten(desk: Desk, record: MakeRecord) -> None:
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


def test_to_note_what_was_published_reads_nothing_that_was_noted_before(tmp_path: Path) -> None:
    """Else each notification would cost more than the last."""
    file = tmp_path / "store.db"
    update = executed(f"sqlite:///{file}", lambda t: t.outbox.published(PLACE, 0), "UPDATE")
    with sqlite3.connect(file) as connection:
        ((*_, plan),) = connection.execute(f"EXPLAIN QUERY PLAN {update}", [0, *PLACE, 0])
    connection.close()
    assert "USING INDEX outbox_pending_seq (topic=? AND partition=? AND seq<?)" in plan


def executed(url: str, what: Callable[[Transaction], object], verb: str) -> str:
    """The one statement of a kind that something executes."""
    store = Store(url)
    statements: list[str] = []
    event.listen(Engine, "before_cursor_execute", note := lambda *called: statements.append(called[2]))
    with store.transaction() as t:
        what(t)
    event.remove(Engine, "before_cursor_execute", note)
    store.close()
    (found,) = (statement for statement in statements if statement.startswith(verb))
    return found


def _alert_id(record: Record) -> str:
    return str(Codec.of("alert").decode(record.value)["alert_id"])
