"""The store's ties to Kafka: positions in the alert topics, and the outbox with its sequence numbers."""

from collections.abc import Iterable
from typing import Any

import msgspec
import sqlalchemy as sql

from lozenge.contracts.record import Partition
from lozenge.errors import Fenced
from lozenge_downstream.model import Outgoing, RawHeaders
from lozenge_downstream.store.sql_helpers import insert, upsert
from lozenge_downstream.store.tables import alert_topics, is_pending, outbox, positions, sequences


def _at(table: sql.Table) -> tuple[sql.ColumnElement[bool], ...]:
    """The condition for one partition; `_of` has its parameters."""
    return table.c.topic == sql.bindparam("t"), table.c.partition == sql.bindparam("p")


def _of(partition: Partition, **more: Any) -> dict[str, Any]:
    return {"t": partition[0], "p": partition[1], **more}


_POSITION = sql.select(positions.c.next).where(*_at(positions))
_TOPIC_ID = sql.select(alert_topics.c.id).where(alert_topics.c.topic == sql.bindparam("t"))
_MOVE = (
    positions.update()
    .where(*_at(positions), positions.c.next == sql.bindparam("expected"))
    .values(next=sql.bindparam("to"))
)
_NUMBER = sql.select(sequences.c.next).where(*_at(sequences))
_PENDING = sql.select(outbox).where(is_pending).order_by(outbox.c.row).limit(sql.bindparam("most"))
_PUBLISHED = (
    outbox.update()
    .where(*_at(outbox), outbox.c.seq <= sql.bindparam("upto"), is_pending)
    .values(published_at=sql.bindparam("now"))
)
_RECORD = (*_at(outbox), outbox.c.seq == sql.bindparam("number"))


class ReadPositions:
    """The next offset to read of each alert partition. Moving one proves that no other notifier has."""

    def __init__(self, connection: sql.Connection) -> None:
        self._connection = connection

    def of(self, partition: Partition) -> int | None:
        """The next offset to read; None for a partition never read."""
        return self._connection.execute(_POSITION, _of(partition)).scalar()

    def are_of_another(self, topic: str, id: str) -> bool:
        """Whether the positions were of another topic of this name than the one with this `id`: they are gone then.

        The id is recorded.
        """
        known = self._connection.execute(_TOPIC_ID, {"t": topic}).scalar()
        if known != id:
            upsert(self._connection, alert_topics, {"topic": topic, "id": id})
        if known is None or known == id:
            return False
        self._connection.execute(positions.delete().where(positions.c.topic == topic))
        return True

    def move(self, partition: Partition, expected: int | None, offset: int) -> None:
        """Sets the next offset to read, which was `expected`. Raises Fenced if another notifier has moved it."""
        if expected is None:
            # a row that another notifier has just made is not changed
            fresh = {"topic": partition[0], "partition": partition[1], "next": offset}
            if self.of(partition) is None:
                insert(self._connection, positions, [fresh])
                return
        elif self._connection.execute(_MOVE, _of(partition, expected=expected, to=offset)).rowcount:
            return
        raise Fenced(
            f"recording {partition[0]}[{partition[1]}]: another notifier has moved the position",
            hint="this one stops; the group has assigned its partitions to the other",
        )


class Outbox:
    """Records on their way to Kafka."""

    def __init__(self, connection: sql.Connection, now: float) -> None:
        self._connection = connection
        self._now = now
        self._numbers: dict[Partition, int] = {}

    def number(self, topic: str, partition: int) -> int:
        """Takes the next sequence number of an output partition; the first is 0. The transaction must be exclusive."""
        at = topic, partition
        if at not in self._numbers:
            self._numbers[at] = self.next_seq(at)
        self._numbers[at] += 1
        return self._numbers[at] - 1

    def send(self, records: Iterable[Outgoing]) -> None:
        """Adds records to the outbox and writes the counters of their numbers."""
        fresh = {"created_at": self._now, "published_at": None}
        insert(self._connection, outbox, (_fields(r) | {"headers": pack(r.headers), **fresh} for r in records))
        for (topic, partition), value in self._numbers.items():
            upsert(self._connection, sequences, {"topic": topic, "partition": partition, "next": value})

    def published(self, partition: Partition, seq: int) -> int:
        """Marks an output partition as published up to `seq`; returns how many rows were not marked before."""
        return self._connection.execute(_PUBLISHED, _of(partition, upto=seq, now=self._now)).rowcount

    def pending(self, limit: int) -> list[Outgoing]:
        """The oldest `limit` records to publish; within a partition that is the order of `seq`."""
        return [_outgoing(row) for row in self._connection.execute(_PENDING, {"most": limit})]

    def replace(self, record: Outgoing) -> None:
        """Replaces the record with the number of `record`, because Kafka refuses it as it is."""
        changed = {"key": record.key, "value": record.value, "headers": pack(record.headers)}
        where = _of((record.topic, record.partition), number=record.seq)
        self._connection.execute(outbox.update().where(*_RECORD).values(changed), where)

    def at(self, partition: Partition, seq: int) -> Outgoing | None:
        """One record; None if there is none or it has expired."""
        row = self._connection.execute(sql.select(outbox).where(*_RECORD), _of(partition, number=seq)).one_or_none()
        return _outgoing(row) if row else None

    def by_id(self, id: str) -> Outgoing:
        """The record with this id, which must be there."""
        return _outgoing(self._connection.execute(sql.select(outbox).where(outbox.c.id == id)).one())

    def next_seq(self, partition: Partition) -> int:
        """The sequence number that the next record of an output partition will get."""
        return self._connection.execute(_NUMBER, _of(partition)).scalar() or 0


def pack(headers: RawHeaders) -> str:
    """Headers as JSON; latin-1 maps every byte to one character and back."""
    return msgspec.json.encode(
        [(name, None if value is None else value.decode("latin-1")) for name, value in headers]
    ).decode()


def unpack(text: str) -> RawHeaders:
    """The headers that `pack` was given."""
    return [(name, None if value is None else value.encode("latin-1")) for name, value in msgspec.json.decode(text)]


def _fields(record: Outgoing) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__slots__}


def _outgoing(row: Any) -> Outgoing:
    fields = {name: getattr(row, name) for name in Outgoing.__slots__}
    return Outgoing(**fields | {"headers": unpack(row.headers)})
