"""Notifications on their way to channels, by due time; and disabled channels.

A channel gets the messages of one case one at a time and in order. A message waits while the one before it is due,
so it is enough to look at the message just before.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sql
from sqlalchemy import bindparam

from lozenge_downstream.model import ChannelTrouble
from lozenge_downstream.store.sql_helpers import among, found, insert, upsert
from lozenge_downstream.store.tables import (
    DUE,
    deliveries,
    disabled_channels,
    failed_attempts,
    is_due,
    is_failed,
    outbox,
)

_BEFORE, _EARLIER = outbox.alias("before"), deliveries.alias("earlier")


@dataclass(frozen=True, slots=True)
class Delivery:
    """A notification that is due on a channel; `attempts` counts the attempts so far."""

    channel: str
    notification_id: str
    body: str
    attempts: int
    detected_at: float | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result of one attempt: sent, due again at `due_at`, or failed with `error`."""

    delivery: Delivery
    state: str
    due_at: float
    error: str | None = None
    disable: bool = False


def _of_the_one_before(column: sql.ColumnElement[Any]) -> sql.ScalarSelect[Any]:
    """A column of `_EARLIER`: the delivery just before, of the same case on the same channel."""
    return (
        sql.select(column)
        .join_from(_BEFORE, _EARLIER, _EARLIER.c.notification_id == _BEFORE.c.id)
        .where(_BEFORE.c.case_id == outbox.c.case_id, _BEFORE.c.row < outbox.c.row)
        .where(_EARLIER.c.channel == deliveries.c.channel)
        .order_by(_BEFORE.c.row.desc())
        .limit(1)
        .scalar_subquery()
    )


_IN_OUTBOX = outbox.c.id == deliveries.c.notification_id
_MINE = (deliveries.c.channel == bindparam("c"), deliveries.c.notification_id == bindparam("n"))
_LATER = among(
    sql.select(
        deliveries.c.channel, deliveries.c.notification_id, _of_the_one_before(_EARLIER.c.due_at).label("at")
    ).join(outbox, _IN_OUTBOX),
    deliveries.c.notification_id,
)
_DUE = (
    sql.select(
        deliveries.c.channel,
        deliveries.c.notification_id,
        outbox.c.body,
        deliveries.c.attempts,
        outbox.c.detected_at,
    )
    .join(outbox, _IN_OUTBOX)
    .where(deliveries.c.channel == bindparam("c"), is_due, deliveries.c.due_at <= bindparam("now"))
    .where(_of_the_one_before(_EARLIER.c.state).is_distinct_from(sql.literal_column(f"'{DUE}'")))
    .order_by(deliveries.c.due_at)
    .limit(bindparam("most"))
)
_POSTPONE = deliveries.update().where(*_MINE).values(due_at=bindparam("d"))
_SETTLE = (
    deliveries.update()
    .where(*_MINE, is_due)
    .values(state=bindparam("s"), attempts=bindparam("a"), due_at=bindparam("d"), error=bindparam("e"))
)
_AFTER = sql.select(outbox.c.id).join(
    _BEFORE, sql.and_(_BEFORE.c.case_id == outbox.c.case_id, _BEFORE.c.row < outbox.c.row)
)
_POSTPONE_LATER = (
    deliveries.update()
    .where(deliveries.c.channel == bindparam("c"), is_due)
    .where(deliveries.c.notification_id.in_(_AFTER.where(_BEFORE.c.id == bindparam("n"))))
    .values(due_at=bindparam("d"))
)
_DISABLED = sql.select(disabled_channels.c.channel, disabled_channels.c.reason)


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

    def line_up(self, notification_ids: Sequence[str]) -> None:
        """Makes these due no sooner than the earlier messages of their cases, so that no query finds them in vain."""
        rows = found(self._connection, _LATER, notification_ids)
        if late := [{"c": r.channel, "n": r.notification_id, "d": r.at} for r in rows if r.at and r.at > self._now]:
            self._connection.execute(_POSTPONE, late)

    def due(self, channel: str, limit: int) -> list[Delivery]:
        """Up to `limit` due deliveries of a channel, longest due first, at most one of each case."""
        rows = self._connection.execute(_DUE, {"c": channel, "now": self._now, "most": limit})
        return [Delivery(*row) for row in rows]

    def settle(self, attempts: Iterable[Attempt]) -> None:
        """Records results. A failed attempt keeps a row, and later messages of its case wait as long.

        A delivery that has ended is never due again: another notifier may have sent it in the meantime.
        """
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
        self._connection.execute(_SETTLE, rows)
        failed = [row for row in rows if row["e"] is not None]
        insert(
            self._connection,
            failed_attempts,
            [{"notification_id": r["n"], "channel": r["c"], "at": self._now, "error": r["e"]} for r in failed],
        )
        if again := [row for row in failed if row["s"] == DUE]:
            self._connection.execute(_POSTPONE_LATER, again)

    def again(self, channel: str, first: int, partition: int | None, topic: str, *, rest: bool = False) -> int:
        """Makes the notifications of a channel from `seq` `first` on due again; returns how many.

        With `rest` also those that were never routed to it.
        """
        where = [outbox.c.topic == topic, outbox.c.seq >= first, outbox.c.body.is_not(None)]
        if partition is not None:
            where.append(outbox.c.partition == partition)
        ids = sql.select(outbox.c.id).where(*where)
        mine = (deliveries.c.channel == channel, deliveries.c.notification_id.in_(ids))
        change = {"state": DUE, "attempts": 0, "due_at": self._now, "error": None}
        self._connection.execute(deliveries.update().where(*mine).values(change))
        if rest:
            known = sql.select(deliveries.c.notification_id).where(deliveries.c.channel == channel)
            values = [sql.literal(channel), outbox.c.id, sql.literal(DUE), sql.literal(0), sql.literal(self._now)]
            missing = sql.select(*values).where(*where, outbox.c.id.not_in(known)).order_by(outbox.c.row)
            names = ["channel", "notification_id", "state", "attempts", "due_at"]
            self._connection.execute(deliveries.insert().from_select(names, missing))
        count = sql.select(sql.func.count()).select_from(deliveries).where(*mine)
        return int(self._connection.execute(count).scalar_one())

    def retry_failed(self, channel: str) -> int:
        """Makes the failed messages of a channel due again, with all of their attempts; returns how many."""
        change = {"state": DUE, "attempts": 0, "due_at": self._now, "error": None}
        return self._connection.execute(
            deliveries.update().where(deliveries.c.channel == channel, is_failed).values(change)
        ).rowcount

    def troubles(self, since: float, attempts: int) -> list[ChannelTrouble]:
        """What a person should know of channels: those that are disabled, or have a failed or retried message.

        A message must have failed after `since`, or be retried after `attempts` attempts.
        """
        waiting = self.orphans([])
        disabled = sql.select(disabled_channels.c.channel, disabled_channels.c.reason, disabled_channels.c.at)
        found = [
            ChannelTrouble(row.channel, "disabled", waiting.get(row.channel, 0), row.reason, row.at)
            for row in self._connection.execute(disabled)
        ]
        for kind, at, where in (
            ("failed", deliveries.c.due_at, (is_failed, deliveries.c.due_at > since)),
            ("retrying", sql.literal(self._now), (is_due, deliveries.c.attempts >= attempts)),
        ):
            latest = sql.select(deliveries.c.channel, sql.func.count(), sql.func.max(at)).where(*where)
            for channel, count, moment in self._connection.execute(latest.group_by(deliveries.c.channel)):
                error = sql.select(deliveries.c.error).where(*where, deliveries.c.channel == channel)
                last = self._connection.execute(error.order_by(deliveries.c.due_at.desc()).limit(1)).scalar_one()
                found.append(ChannelTrouble(channel, kind, count, str(last), moment))
        return found

    def of(self, notification_ids: Sequence[str]) -> list[dict[str, Any]]:
        """The state of each notification on each channel."""
        query = sql.select(deliveries).where(deliveries.c.notification_id.in_(notification_ids))
        return [dict(row) for row in self._connection.execute(query).mappings()]

    def counts(self) -> dict[tuple[str, str], int]:
        """How many deliveries there are of each channel and state."""
        query = sql.select(deliveries.c.channel, deliveries.c.state, sql.func.count())
        rows = self._connection.execute(query.group_by(deliveries.c.channel, deliveries.c.state))
        return {(str(row[0]), str(row[1])): int(row[2]) for row in rows}

    def orphans(self, channels: Collection[str]) -> dict[str, int]:
        """How many deliveries wait for channels that are not among `channels`, by name."""
        query = sql.select(deliveries.c.channel, sql.func.count()).where(is_due)
        query = query.where(deliveries.c.channel.not_in(channels)).group_by(deliveries.c.channel)
        return {str(row[0]): int(row[1]) for row in self._connection.execute(query)}

    def disable(self, channel: str, reason: str) -> None:
        """Disables a channel; its deliveries wait."""
        upsert(self._connection, disabled_channels, {"channel": channel, "at": self._now, "reason": reason})

    def enable(self, channel: str) -> bool:
        """Enables a channel; returns whether it was disabled."""
        return bool(
            self._connection.execute(disabled_channels.delete().where(disabled_channels.c.channel == channel)).rowcount
        )

    def disabled(self) -> dict[str, str]:
        """The disabled channels, and why."""
        return {str(row[0]): str(row[1]) for row in self._connection.execute(_DISABLED)}
