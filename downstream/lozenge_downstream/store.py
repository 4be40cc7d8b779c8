"""The notifier's store: who owns it, its transactions, and what the loops read from it.

Guarantees: a batch is recorded with its offsets or not at all; `seq` is gapless because its counter
lives in the same transaction; the notifier that opened the store last owns it, and whatever an earlier
one does here raises Fenced.
"""

import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sql
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, SQLAlchemyError

from lozenge.errors import ConfigError, Fatal, Fenced, Retryable
from lozenge_downstream.batch import Batch, Delivery, unpack
from lozenge_downstream.model import Outgoing
from lozenge_downstream.tables import SCHEMA_VERSION, deliveries, is_due, meta, metadata, outbox, positions, sequences

LOCK_SECONDS = 10.0
READ = {"lozenge_read": True}


class StoreUnavailable(Retryable):
    """The database is locked, away, or on a full disk; what was not written then is still in Kafka."""

    exit_code = 3


class Store:
    """One database; thread-safe. `url` is a SQLAlchemy URL."""

    def __init__(self, url: str) -> None:
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
        # Two of our own threads must queue here: SQLite's lock would make the second one sleep and poll.
        self._one_writer = threading.Lock()
        self._epoch = 0
        with self._translated("opening"), self._one_writer, self._engine.begin() as connection:
            self._epoch = _take_over(connection, self.name)

    @contextmanager
    def transaction(self) -> Iterator[Batch]:
        """Commits on a normal exit, rolls back on an error; raises Fenced, StoreUnavailable or Fatal."""
        with self._translated("writing"), self._one_writer, self._engine.begin() as connection:
            self._check(connection)
            yield Batch(connection, time.time())

    def check_owner(self) -> None:
        """Raises Fenced if another notifier opened this store since."""
        with self._reading():
            pass

    def position(self, topic: str, partition: int) -> int | None:
        """The next offset to read; None for a partition never read."""
        query = sql.select(positions.c.next).where(positions.c.topic == topic, positions.c.partition == partition)
        with self._reading() as connection:
            return connection.execute(query).scalar()

    def next_seq(self, topic: str, partition: int) -> int:
        """The sequence number that the next record of an output partition will get."""
        query = sql.select(sequences.c.next).where(sequences.c.topic == topic, sequences.c.partition == partition)
        with self._reading() as connection:
            return connection.execute(query).scalar() or 0

    def outgoing(self, topic: str, partition: int, seq: int) -> Outgoing | None:
        """One outbox row; None if it was never there or is long forgotten."""
        mine = (outbox.c.topic == topic, outbox.c.partition == partition, outbox.c.seq == seq)
        with self._reading() as connection:
            row = connection.execute(sql.select(outbox).where(*mine)).one_or_none()
        return _outgoing(row) if row else None

    def pending(self, limit: int) -> list[Outgoing]:
        """The oldest `limit` outbox rows to publish; within a partition that is the order of `seq`."""
        query = sql.select(outbox).where(outbox.c.published_at.is_(None)).limit(limit)
        with self._reading() as connection:
            rows = connection.execute(query.order_by(outbox.c.row))
            return [_outgoing(row) for row in rows]

    def due(self, webhook: str, limit: int) -> list[Delivery]:
        """Up to `limit` deliveries of a webhook whose time has come, longest due first."""
        table = deliveries.c
        query = sql.select(table.webhook, table.notification_id, table.body, table.attempts, table.detected_at)
        query = query.where(table.webhook == webhook, is_due, table.due_at <= time.time())
        with self._reading() as connection:
            return [Delivery(*row) for row in connection.execute(query.order_by(table.due_at).limit(limit))]

    def orphans(self, webhooks: Collection[str]) -> dict[str, int]:
        """Deliveries that wait for a webhook not among `webhooks`, counted by name."""
        query = sql.select(deliveries.c.webhook, sql.func.count()).where(is_due)
        query = query.where(deliveries.c.webhook.not_in(webhooks)).group_by(deliveries.c.webhook)
        with self._reading() as connection:
            return {str(row[0]): int(row[1]) for row in connection.execute(query)}

    def close(self) -> None:
        """Closes every connection."""
        self._engine.dispose()

    def _check(self, connection: sql.Connection) -> None:
        # Shared with readers; on PostgreSQL it makes a take-over wait for a transaction that has begun.
        query = sql.select(meta.c.value).where(meta.c.key == "epoch").with_for_update(read=True)
        if connection.execute(query).scalar() != self._epoch:
            raise Fenced(
                f"using the store {self.name}: a newer notifier has opened it",
                hint="one notifier owns a store; this one stops, the newer one goes on",
            )

    @contextmanager
    def _reading(self) -> Iterator[sql.Connection]:
        with self._translated("reading"), self._engine.connect().execution_options(**READ) as connection:
            self._check(connection)
            yield connection

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
        hint = "another program holds the store; end it, this one tries again when restarted"
        return StoreUnavailable(message, hint=hint)
    if "full" in message:
        hint = "free space on the disk that holds the store; it tries again when restarted, and nothing is lost"
        return StoreUnavailable(message, hint=hint)
    if "readonly" in message:
        return Fatal(message, hint="allow writing to the disk that holds the store")
    if "unable to open" in message:
        return ConfigError(message, hint="its folder must exist and be writable; see LOZENGE_DOWNSTREAM_STORE")
    return StoreUnavailable(message, hint="is the database reachable?")


def _take_over(connection: sql.Connection, name: str) -> int:
    """Makes or checks the tables and becomes the owner; the new epoch."""
    if not sql.inspect(connection).has_table(meta.name):
        metadata.create_all(connection)
        initial = [{"key": "schema_version", "value": SCHEMA_VERSION}, {"key": "epoch", "value": 0}]
        connection.execute(meta.insert(), initial)
    version = connection.execute(sql.select(meta.c.value).where(meta.c.key == "schema_version")).scalar_one()
    if version > SCHEMA_VERSION:
        raise Fatal(
            f"opening the store {name}: its schema is version {version}, this release knows {SCHEMA_VERSION}",
            hint="run the release that wrote it, or a newer one",
        )
    connection.execute(meta.update().where(meta.c.key == "epoch").values(value=meta.c.value + 1))
    return int(connection.execute(sql.select(meta.c.value).where(meta.c.key == "epoch")).scalar_one())


def _outgoing(row: Any) -> Outgoing:
    return Outgoing(row.topic, row.partition, row.seq, row.id, row.key, row.value, unpack(row.headers), row.detected_at)


def _prepare_sqlite(engine: sql.Engine) -> None:
    @event.listens_for(engine, "connect")
    def configure(dbapi: Any, _: object) -> None:
        dbapi.isolation_level = None  # we say BEGIN ourselves, below
        dbapi.execute(f"PRAGMA busy_timeout = {int(LOCK_SECONDS * 1000)}")
        dbapi.execute("PRAGMA journal_mode = WAL")
        # FULL: with NORMAL a power cut takes back the last commits, and Kafka has already seen their seq.
        dbapi.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def begin(connection: sql.Connection) -> None:
        # IMMEDIATE: a transaction that turns from reading to writing half-way could not wait for the lock.
        read = connection.get_execution_options().get("lozenge_read")
        connection.exec_driver_sql("BEGIN" if read else "BEGIN IMMEDIATE")
