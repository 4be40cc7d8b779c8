"""The database: connections, transactions, and the translation of errors.

Guarantees: a transaction is written as a whole or not at all; `seq` is gapless because its counter is in the same
transaction as the records that it numbers. Several notifiers may use one database.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sql
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, SQLAlchemyError

from lozenge.errors import ConfigError, Fatal, LozengeError, Retryable
from lozenge.process.retries import retry
from lozenge_downstream.store.migrations import upgrade
from lozenge_downstream.store.transaction import Transaction

LOCK_SECONDS = 10.0
READ = {"lozenge_read": True}
_EXCLUSIVE = 0x6C6F7A656E6765
"""PostgreSQL's advisory lock of exclusive transactions."""


class StoreUnavailable(Retryable):
    """The database is locked, unreachable, or on a full disk. What was not written is still in Kafka."""

    exit_code = 3


class Store:
    """One database; thread-safe. `url` is a SQLAlchemy URL, `clock` returns the seconds since the epoch."""

    def __init__(self, url: str, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        try:
            self._engine = sql.create_engine(url)
        except ArgumentError as error:
            # The URL itself may hold a password.
            raise ConfigError(
                f"opening the store: {error}", hint="set LOZENGE_DOWNSTREAM_STORE to a SQLAlchemy URL"
            ) from None
        except ImportError as error:
            raise ConfigError(
                f"opening the store: {error}",
                hint='install its driver, such as `pip install "psycopg[binary]"`, or set LOZENGE_DOWNSTREAM_STORE '
                "to the URL of another database",
            ) from None
        self.name = self._engine.url.render_as_string(hide_password=True)
        if self._engine.dialect.name == "sqlite":
            _prepare_sqlite(self._engine)
        # Our own threads queue here: SQLite's lock would make them sleep and poll.
        self._one_writer = threading.Lock()
        try:
            with self._translated("opening"), self._one_writer, self._engine.begin() as connection:
                _migrate(connection, self.name)
        except LozengeError:
            self.close()
            raise

    @contextmanager
    def transaction(self, *, exclusive: bool = False) -> Iterator[Transaction]:
        """Commits on a normal exit, rolls back on an error; raises StoreUnavailable or Fatal.

        One `exclusive` transaction runs at a time among all notifiers: to group alerts and number records needs that.
        """
        with self._translated("writing"), self._one_writer, self._engine.begin() as connection:
            if exclusive and connection.dialect.name == "postgresql":  # SQLite has one writer anyway
                connection.execute(sql.select(sql.func.pg_advisory_xact_lock(_EXCLUSIVE)))
            yield Transaction(connection, self._clock())

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """A transaction that only reads. It waits for no writer."""
        with self._translated("reading"), self._engine.connect().execution_options(**READ) as connection:
            yield Transaction(connection, self._clock())

    def reclaim(self) -> None:
        """Frees the bytes of deleted rows: SQLite writes its file again, and PostgreSQL vacuums.

        Waits for no reader; raises StoreUnavailable or Fatal.
        """
        with self._translated("reclaiming"), self._one_writer:
            if self._engine.dialect.name != "sqlite":
                with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                    connection.execute(sql.text("VACUUM"))
                return
            raw = self._engine.raw_connection()
            try:
                for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
                    raw.cursor().execute(statement).fetchall()
            finally:
                raw.close()

    def close(self) -> None:
        """Closes every connection."""
        self._engine.dispose()

    @contextmanager
    def _translated(self, doing: str) -> Iterator[None]:
        try:
            yield
        except OperationalError as error:
            raise _explained(f"{doing} the store {self.name}: {error.orig}") from error
        except SQLAlchemyError as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            raise Fatal(f"{doing} the store {self.name}: {type(cause).__name__}: {cause}") from error


def _explained(message: str) -> StoreUnavailable | Fatal:
    if "locked" in message:
        hint = "another program has locked the store; stop it, this one tries again when restarted"
        return StoreUnavailable(message, hint=hint)
    if "full" in message:
        hint = "free space on the disk of the store; nothing is lost, this one tries again when restarted"
        return StoreUnavailable(message, hint=hint)
    if "readonly" in message:
        return Fatal(message, hint="make the disk of the store writable")
    if "unable to open" in message:
        return ConfigError(message, hint="its folder must exist and be writable; see LOZENGE_DOWNSTREAM_STORE")
    return StoreUnavailable(message, hint="is the database reachable?")


def _migrate(connection: sql.Connection, name: str) -> None:
    if connection.dialect.name == "postgresql":  # of notifiers that start at once one migrates, the others wait
        connection.execute(sql.select(sql.func.pg_advisory_xact_lock(_EXCLUSIVE)))
    upgrade(connection, name)


def _prepare_sqlite(engine: sql.Engine) -> None:
    @event.listens_for(engine, "connect")
    def configure(dbapi: Any, _: object) -> None:
        dbapi.isolation_level = None  # BEGIN is executed below
        dbapi.execute(f"PRAGMA busy_timeout = {int(LOCK_SECONDS * 1000)}")
        retry(  # SQLite itself does not wait here for another notifier that starts
            lambda: dbapi.execute("PRAGMA journal_mode = WAL"),
            lambda error: "locked" in str(error),
            seconds=LOCK_SECONDS,
            pause=0.05,
        )
        # FULL: with NORMAL a power failure undoes the last commits, and Kafka has their seq already.
        dbapi.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def begin(connection: sql.Connection) -> None:
        # IMMEDIATE: a transaction that begins by reading and then writes could not wait for the lock.
        read = connection.get_execution_options().get("lozenge_read")
        connection.exec_driver_sql("BEGIN" if read else "BEGIN IMMEDIATE")
