"""One open transaction of the store: everything the notifier ever writes goes through here."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import sqlalchemy as sql
from sqlalchemy import bindparam

from lozenge_downstream.model import Decision, Outgoing, RawHeaders, Record
from lozenge_downstream.tables import DUE, decisions, deliveries, is_due, outbox, positions, sequences

CHUNK = 500


@dataclass(frozen=True, slots=True)
class Delivery:
    """A webhook message that is due; `attempts` counts those already made, times are epoch seconds."""

    webhook: str
    notification_id: str
    body: str
    attempts: int
    detected_at: float


@dataclass(frozen=True, slots=True)
class Attempt:
    """How one attempt ended: sent, due again at `due_at`, or failed for good with `error`."""

    delivery: Delivery
    state: str
    due_at: float
    error: str | None = None


class Batch:
    """What is written here appears together or never."""

    def __init__(self, connection: sql.Connection, now: float) -> None:
        self._connection = connection
        self._now = now
        self._numbers: dict[tuple[str, int], int] = {}

    def seen(self, alert_ids: Sequence[str]) -> set[str]:
        """Those of `alert_ids` that an earlier batch decided."""
        found: set[str] = set()
        for start in range(0, len(alert_ids), CHUNK):
            query = sql.select(decisions.c.alert_id).where(decisions.c.alert_id.in_(alert_ids[start : start + CHUNK]))
            found.update(str(alert_id) for alert_id in self._connection.execute(query).scalars())
        return found

    def number(self, topic: str, partition: int) -> int:
        """Takes the next sequence number of an output partition; the first is 0."""
        place = topic, partition
        if place not in self._numbers:
            query = sql.select(sequences.c.next).where(*_at(sequences, place))
            self._numbers[place] = self._connection.execute(query).scalar() or 0
        self._numbers[place] += 1
        return self._numbers[place] - 1

    def record(self, decided: Sequence[Decision]) -> None:
        """Writes decisions, outbox rows, deliveries and the position behind each alert partition."""
        self._insert(decisions, (_decision(d) | {"decided_at": self._now} for d in decided))
        self.send(d.outgoing for d in decided if d.outgoing)
        fresh = {"state": DUE, "attempts": 0, "due_at": self._now}
        self._insert(deliveries, ({**_fields(m), **fresh} for d in decided for m in d.messages))
        ends = {(d.record.topic, d.record.partition): d.record.offset + 1 for d in decided}
        for place, end in ends.items():
            self.move(place, end)

    def move(self, place: tuple[str, int], offset: int) -> None:
        """Sets the next offset to read of an alert partition."""
        self._upsert(positions, place, offset)

    def send(self, records: Iterable[Outgoing]) -> None:
        """Puts records into the outbox and writes the counters behind them."""
        self._insert(outbox, (_fields(r) | {"headers": pack(r.headers), "published_at": None} for r in records))
        for place, value in self._numbers.items():
            self._upsert(sequences, place, value)

    def published(self, topic: str, partition: int, seq: int) -> int:
        """Notes that an output partition stands in Kafka up to `seq`; returns how many rows that was news for."""
        pending = (*_at(outbox, (topic, partition)), outbox.c.seq <= seq, outbox.c.published_at.is_(None))
        return self._connection.execute(outbox.update().where(*pending).values(published_at=self._now)).rowcount

    def settle(self, attempts: Iterable[Attempt]) -> None:
        """Writes down how attempts ended."""
        mine = (deliveries.c.webhook == bindparam("w"), deliveries.c.notification_id == bindparam("n"))
        change: dict[str, Any] = {
            "state": bindparam("s"),
            "attempts": bindparam("a"),
            "due_at": bindparam("d"),
            "error": bindparam("e"),
        }
        rows = [
            {
                "w": a.delivery.webhook,
                "n": a.delivery.notification_id,
                "s": a.state,
                "a": a.delivery.attempts + 1,
                "d": a.due_at,
                "e": a.error,
            }
            for a in attempts
        ]
        self._connection.execute(deliveries.update().where(*mine).values(change), rows)

    def notification(self, notification_id: str) -> Record:
        """A notification as Kafka has it, at the coordinates of the alert that caused it."""
        cause = sql.select(decisions).where(decisions.c.notification_id == notification_id)
        sent = sql.select(outbox).where(outbox.c.id == notification_id)
        where, row = self._connection.execute(cause).one(), self._connection.execute(sent).one()
        return Record(where.topic, where.partition, where.offset, row.key, row.value, unpack(row.headers))

    def forget(self, before: float) -> None:
        """Deletes what was decided, published and delivered before `before`; what is still on its way stays."""
        waiting = sql.select(deliveries.c.notification_id).where(is_due)
        old = sql.and_(outbox.c.published_at < before, outbox.c.id.not_in(waiting))
        self._connection.execute(outbox.delete().where(old))
        self._connection.execute(deliveries.delete().where(~is_due, deliveries.c.due_at < before))
        done = sql.or_(decisions.c.notification_id.is_(None), decisions.c.notification_id.not_in(waiting))
        self._connection.execute(decisions.delete().where(decisions.c.decided_at < before, done))

    def _insert(self, table: sql.Table, rows: Iterable[Mapping[str, Any]]) -> None:
        if batch := list(rows):
            self._connection.execute(table.insert(), batch)

    def _upsert(self, table: sql.Table, place: tuple[str, int], value: int) -> None:
        # Update, then insert: plain SQL that every database understands alike; there is one writer.
        if not self._connection.execute(table.update().where(*_at(table, place)).values(next=value)).rowcount:
            self._connection.execute(table.insert().values(topic=place[0], partition=place[1], next=value))


def pack(headers: RawHeaders) -> str:
    """Headers as JSON; latin-1 maps every byte to one character and back."""
    return msgspec.json.encode(
        [(name, None if value is None else value.decode("latin-1")) for name, value in headers]
    ).decode()


def unpack(text: str) -> RawHeaders:
    """The headers that `pack` was given."""
    return [(name, None if value is None else value.encode("latin-1")) for name, value in msgspec.json.decode(text)]


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__slots__}


def _decision(d: Decision) -> dict[str, Any]:
    return {
        "topic": d.record.topic,
        "partition": d.record.partition,
        "offset": d.record.offset,
        "alert_id": d.alert_id,
        "outcome": d.outcome.value,
        "reason": d.reason,
        "notification_id": d.notification_id,
    }


def _at(table: sql.Table, place: tuple[str, int]) -> tuple[sql.ColumnElement[bool], ...]:
    return table.c.topic == place[0], table.c.partition == place[1]
