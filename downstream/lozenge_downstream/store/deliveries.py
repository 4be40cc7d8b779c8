"""Notifications on their way to channels, by due time; and channels that were turned off."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sql
from sqlalchemy import bindparam

from lozenge_downstream.store.rows import insert, upsert
from lozenge_downstream.store.tables import DUE, deliveries, disabled, is_due, outbox


@dataclass(frozen=True, slots=True)
class Delivery:
    """A notification that is due on a channel; `attempts` counts those already made."""

    channel: str
    notification_id: str
    body: str
    attempts: int
    detected_at: float | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """How one attempt ended: sent, due again at `due_at`, or failed for good with `error`."""

    delivery: Delivery
    state: str
    due_at: float
    error: str | None = None
    disable: bool = False


class Deliveries:
    """The deliveries of one transaction."""

    def __init__(self, connection: sql.Connection, now: float) -> None:
        self._connection = connection
        self._now = now

    def add(self, notifications: Iterable[tuple[str, Sequence[str]]]) -> None:
        """Makes each notification due on each of its channels."""
        fresh = {"state": DUE, "attempts": 0, "due_at": self._now}
        rows = [
            {"channel": name, "notification_id": id, **fresh} for id, channels in notifications for name in channels
        ]
        insert(self._connection, deliveries, rows)

    def due(self, channel: str, limit: int) -> list[Delivery]:
        """Up to `limit` deliveries of a channel whose time has come, longest due first."""
        table = deliveries.c
        query = sql.select(
            table.channel, table.notification_id, outbox.c.body, table.attempts, outbox.c.detected_at
        ).join(outbox, outbox.c.id == table.notification_id)
        query = query.where(table.channel == channel, is_due, table.due_at <= self._now)
        return [Delivery(*row) for row in self._connection.execute(query.order_by(table.due_at).limit(limit))]

    def settle(self, attempts: Iterable[Attempt]) -> None:
        """Writes down how attempts ended."""
        mine = (deliveries.c.channel == bindparam("c"), deliveries.c.notification_id == bindparam("n"))
        change: dict[str, Any] = {
            "state": bindparam("s"),
            "attempts": bindparam("a"),
            "due_at": bindparam("d"),
            "error": bindparam("e"),
        }
        rows = [
            {
                "c": a.delivery.channel,
                "n": a.delivery.notification_id,
                "s": a.state,
                "a": a.delivery.attempts + 1,
                "d": a.due_at,
                "e": a.error,
            }
            for a in attempts
        ]
        self._connection.execute(deliveries.update().where(*mine).values(change), rows)

    def again(self, channel: str, first: int, partition: int | None, topic: str) -> int:
        """Makes every notification from `seq` `first` on due on a channel, sent before or not; how many those are."""
        where = [outbox.c.topic == topic, outbox.c.seq >= first, outbox.c.body.is_not(None)]
        if partition is not None:
            where.append(outbox.c.partition == partition)
        ids = sql.select(outbox.c.id).where(*where)
        mine = (deliveries.c.channel == channel, deliveries.c.notification_id.in_(ids))
        change = {"state": DUE, "attempts": 0, "due_at": self._now, "error": None}
        known = sql.select(deliveries.c.notification_id).where(deliveries.c.channel == channel)
        self._connection.execute(deliveries.update().where(*mine).values(change))
        values = [sql.literal(channel), outbox.c.id, sql.literal(DUE), sql.literal(0), sql.literal(self._now)]
        missing = sql.select(*values).where(*where, outbox.c.id.not_in(known)).order_by(outbox.c.row)
        names = ["channel", "notification_id", "state", "attempts", "due_at"]
        self._connection.execute(deliveries.insert().from_select(names, missing))
        return int(self._connection.execute(sql.select(sql.func.count()).where(*where)).scalar_one())

    def of(self, notification_ids: Sequence[str]) -> list[dict[str, Any]]:
        """How each notification fared on each channel."""
        query = sql.select(deliveries).where(deliveries.c.notification_id.in_(notification_ids))
        return [dict(row) for row in self._connection.execute(query).mappings()]

    def standing(self) -> dict[tuple[str, str], int]:
        """How many deliveries there are of each channel and state."""
        query = sql.select(deliveries.c.channel, deliveries.c.state, sql.func.count())
        rows = self._connection.execute(query.group_by(deliveries.c.channel, deliveries.c.state))
        return {(str(row[0]), str(row[1])): int(row[2]) for row in rows}

    def orphans(self, channels: Collection[str]) -> dict[str, int]:
        """Deliveries that wait for a channel not among `channels`, counted by name."""
        query = sql.select(deliveries.c.channel, sql.func.count()).where(is_due)
        query = query.where(deliveries.c.channel.not_in(channels)).group_by(deliveries.c.channel)
        return {str(row[0]): int(row[1]) for row in self._connection.execute(query)}

    def disable(self, channel: str, reason: str) -> None:
        """Turns a channel off; what is due there waits."""
        upsert(self._connection, disabled, {"channel": channel, "at": self._now, "reason": reason})

    def enable(self, channel: str) -> bool:
        """Turns a channel on again; whether it was off."""
        return bool(self._connection.execute(disabled.delete().where(disabled.c.channel == channel)).rowcount)

    def disabled(self) -> dict[str, str]:
        """The channels that are off, and why."""
        rows = self._connection.execute(sql.select(disabled.c.channel, disabled.c.reason))
        return {str(row[0]): str(row[1]) for row in rows}
