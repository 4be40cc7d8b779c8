"""A store that cannot be used says why."""

import sqlite3
import sys
from pathlib import Path

import pytest

from lozenge.contracts.topics import Topics
from lozenge.errors import ConfigError, Fatal
from lozenge_downstream.store import Store, StoreUnavailable, database
from tests.faults.disks import filled, small_disk

TOPICS = Topics()
PARTITION = TOPICS.detector("large_amount").alerts, 2


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
            t.positions.move(PARTITION, None, 1)
        assert caught.value.exit_code == 3, "else its supervisor gives it up"
        with store.transaction() as t:
            t.positions.move(PARTITION, None, 1)
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
