"""The store's promises: all or nothing, one owner, known versions, clear refusals."""

import sqlite3
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lozenge import topics
from lozenge.errors import ConfigError, Fatal, Fenced
from lozenge_downstream import store as store_module
from lozenge_downstream.batch import Attempt
from lozenge_downstream.config import Route
from lozenge_downstream.model import Decision, Record
from lozenge_downstream.pipeline import Pipeline
from lozenge_downstream.store import Store, StoreUnavailable
from lozenge_downstream.tables import SENT
from tests.faults.disks import filled, small_disk

MakeRecord = Callable[..., Record]


def take(store: Store, *records: Record, fail: bool = False) -> list[Decision]:
    with store.transaction() as batch:
        pipeline = Pipeline([Route(name="all", webhooks=("ops",))])
        decided = pipeline.run(records, seen=batch.seen, number=batch.number, now=datetime.now(UTC))
        batch.record(decided)
        if fail:
            raise ZeroDivisionError
    return decided


def test_a_batch_is_recorded_with_its_position(store: Store, record: MakeRecord) -> None:
    decided = take(store, record(0), record(1), record(1), Record("pay.alerts.x.v1", 0, 5, None, None, []))
    assert store.position(topics.alerts("large_amount"), 2) == 2
    assert store.position("pay.alerts.x.v1", 0) == 6
    pending = store.pending(10)
    assert [o for d in decided if (o := d.outgoing)] == pending
    assert sorted(o.seq for o in pending if o.topic == topics.NOTIFICATIONS) == [0, 1]
    assert len(store.due("ops", 10)) == 2


def test_seq_goes_on_without_a_gap_after_a_rollback(store: Store, record: MakeRecord) -> None:
    take(store, record(0))
    with pytest.raises(ZeroDivisionError):
        take(store, record(1), fail=True)
    assert store.position(topics.alerts("large_amount"), 2) == 1
    (decision,) = take(store, record(2))
    assert decision.outgoing is not None
    assert decision.outgoing.seq == 1


def test_memory_outlives_the_process(url: str, record: MakeRecord) -> None:
    first = Store(url)
    take(first, record(0))
    first.close()
    second = Store(url)
    (decision,) = take(second, record(0))
    assert decision.outcome == "collapsed"
    second.close()


def test_the_store_belongs_to_who_opened_it_last(store: Store, url: str, record: MakeRecord) -> None:
    newer = Store(url)
    with pytest.raises(Fenced, match="newer notifier"):
        take(store, record(0))
    with pytest.raises(Fenced):
        store.check_owner()
    take(newer, record(0))
    newer.close()


def test_a_newer_schema_is_refused(store: Store, url: str, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("update meta set value = 99 where key = 'schema_version'")
    connection.close()
    with pytest.raises(Fatal, match="version 99, this release knows 1"):
        Store(url)


def test_a_locked_store_says_so(store: Store, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "LOCK_SECONDS", 0.05)
    holder = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="another program holds the store"):
        Store(url)
    holder.close()


def test_a_store_on_a_full_disk_is_to_be_tried_again(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    with small_disk(folder, 8) as refused:
        if refused:
            pytest.skip(f"this machine lets us mount nothing: {refused}")
        url = f"sqlite:///{folder / 'store.db'}"
        Store(url).close()
        with filled(folder), pytest.raises(StoreUnavailable, match="full") as caught:
            Store(url)
        assert caught.value.exit_code == 3, "or whoever supervises it gives it up"
        Store(url).close()


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


def test_forgetting_keeps_what_is_on_its_way(store: Store, record: MakeRecord) -> None:
    ids = [str(d.alert_id) for d in take(store, record(0), record(1))]
    first, second = store.due("ops", 10)
    with store.transaction() as batch:
        for row in store.pending(10):
            batch.published(row.topic, row.partition, row.seq)
        batch.settle([Attempt(first, SENT, time.time())])
        batch.forget(time.time() + 1)
        assert len(batch.seen(ids)) == 1
        assert batch.notification(second.notification_id).topic == topics.alerts("large_amount")
    assert store.due("ops", 10) == [second]
    assert store.orphans(["chat"]) == {"ops": 1}
