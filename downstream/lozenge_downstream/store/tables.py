"""The notifier's tables. Times are seconds since the epoch, UTC.

Each change here needs a revision in `migrations`, which brings existing stores to it.
"""

from typing import Any

import sqlalchemy as sql
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

DUE, SENT, FAILED = "due", "sent", "failed"

# Only a plain INTEGER key counts up by itself in SQLite.
_COUNTED = BigInteger().with_variant(Integer, "sqlite")

metadata = MetaData()


def _partial(name: str, *columns: Column[Any], where: sql.ColumnElement[bool], unique: bool = False) -> None:
    Index(name, *columns, unique=unique, sqlite_where=where, postgresql_where=where)


positions = Table(
    "positions",
    metadata,
    Column("topic", String, primary_key=True),
    Column("partition", Integer, primary_key=True),
    Column("next", BigInteger, nullable=False),
)
"""Per alert partition the next offset to read. This, and not the consumer group, is the truth."""

sequences = Table(
    "sequences",
    metadata,
    Column("topic", String, primary_key=True),
    Column("partition", Integer, primary_key=True),
    Column("next", BigInteger, nullable=False),
)
"""Per output partition the next `seq` to assign."""

leases = Table(
    "leases",
    metadata,
    Column("name", String, primary_key=True),
    Column("holder", String, nullable=False),
    Column("until", Float, nullable=False),
)
"""Who does what one instance alone may do: publish, and send to a channel."""

arrivals = Table(
    "arrivals",
    metadata,
    Column("row", _COUNTED, primary_key=True),
    Column("topic", String, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("offset", BigInteger, nullable=False),
    Column("alert_id", String, index=True),
    Column("detector", String),
    Column("outcome", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("received_at", Float, nullable=False),
    Column("body", Text),
)
"""Every record read, what became of it and why; `body` is the alert. Also the memory that makes repeats collapse."""
is_parked = arrivals.c.outcome == sql.literal_column("'parked'")
_partial("arrivals_parked", arrivals.c.detector, where=is_parked)

counts = Table(
    "counts",
    metadata,
    Column("detector", String, primary_key=True),
    Column("minute", BigInteger, primary_key=True),
    Column("alerts", Integer, nullable=False),
)
"""How many alerts of a detector were accepted in each minute since the epoch."""

cases = Table(
    "cases",
    metadata,
    Column("case_id", String, primary_key=True),
    Column("route", String, nullable=False),
    Column("key", String, nullable=False),
    Column("group", Text, nullable=False),
    Column("opened_at", Float, nullable=False),
    Column("told_at", Float),
    Column("looked_at", Float),
    Column("due_at", Float, nullable=False),
    Column("over_at", Float, nullable=False),
    Column("closed", Boolean, nullable=False),
    Column("severity", String, nullable=False),
    Column("scores", Text, nullable=False),
    Column("tellings", Integer, nullable=False),
)
"""`key` is a digest of route and group; among the open cases there is one of each."""
is_open = cases.c.closed == sql.false()
_partial("cases_open", cases.c.key, where=is_open, unique=True)
_partial("cases_due", cases.c.due_at, where=is_open)
is_closed = cases.c.closed == sql.true()
_partial("cases_over", cases.c.over_at, where=is_closed)

members = Table(
    "members",
    metadata,
    Column("case_id", String, primary_key=True),
    Column("alert_id", String, primary_key=True),
    Column("notification_id", String),
    Column("muted", Text),
)
"""The alerts of a case: which notification told each, or else why an earlier look did not tell it."""
is_waiting = members.c.notification_id.is_(None)
_partial("members_waiting", members.c.case_id, where=is_waiting)
Index("members_alert", members.c.alert_id)

mutes = Table(
    "mutes",
    metadata,
    Column("row", _COUNTED, primary_key=True),
    Column("alert_id", String, nullable=False, index=True),
    Column("route", String, nullable=False),
    Column("at", Float, nullable=False),
    Column("reason", Text, nullable=False),
)
"""Each time that an alert began not to be told for another reason."""

sources = Table(
    "sources",
    metadata,
    Column("rule", String, primary_key=True),
    Column("equal", String, primary_key=True),
    Column("two_sided", Boolean, primary_key=True),
    Column("until", Float, nullable=False, index=True),
    Column("alert_id", String, nullable=False),
)
"""Alerts that inhibit others: of each rule and each value of its `equal` the one that lasts longest.

`two_sided` ones match the rule's target as well, and inhibit only what does not match its source.
"""

silences = Table(
    "silences",
    metadata,
    Column("silence_id", String, primary_key=True),
    Column("matchers", Text, nullable=False),
    Column("author", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("starts_at", Float, nullable=False),
    Column("ends_at", Float, nullable=False),
    Column("created_at", Float, nullable=False),
)

outbox = Table(
    "outbox",
    metadata,
    Column("row", _COUNTED, primary_key=True),
    Column("topic", String, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("id", String, nullable=False, index=True),
    Column("case_id", String),
    Column("key", LargeBinary),
    Column("value", LargeBinary),
    Column("headers", Text, nullable=False),
    Column("body", Text),
    Column("detected_at", Float),
    Column("created_at", Float, nullable=False),
    Column("published_at", Float),
    UniqueConstraint("topic", "partition", "seq", name="outbox_seq"),
)
"""Records on their way to Kafka; `published_at` is null until the relay's transaction is known to hold.

A notification has its case, and `body`: its JSON text for channels. Those of a case were told in the order of `row`.
"""
is_pending = outbox.c.published_at.is_(None)
_partial("outbox_pending", outbox.c.row, where=is_pending)
_partial("outbox_pending_places", outbox.c.topic, outbox.c.partition, outbox.c.seq, where=is_pending)
Index("outbox_case", outbox.c.case_id, outbox.c.row)

deliveries = Table(
    "deliveries",
    metadata,
    Column("channel", String, primary_key=True),
    Column("notification_id", String, primary_key=True),
    Column("state", String, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due_at", Float, nullable=False),
    Column("error", Text),
)
"""One notification to one channel: due (again) at `due_at`; sent, or failed for good, then."""
is_due = deliveries.c.state == sql.literal_column(f"'{DUE}'")
"""Literal, because SQLite takes a partial index only for a condition that it can read in the statement."""
_partial("deliveries_due", deliveries.c.channel, deliveries.c.due_at, where=is_due)
Index("deliveries_notification", deliveries.c.notification_id)

failures = Table(
    "failures",
    metadata,
    Column("row", _COUNTED, primary_key=True),
    Column("notification_id", String, nullable=False, index=True),
    Column("channel", String, nullable=False),
    Column("at", Float, nullable=False),
    Column("error", Text, nullable=False),
)
"""Each attempt of a delivery that failed; how the last one ended stands in `deliveries`, too."""

disabled = Table(
    "disabled",
    metadata,
    Column("channel", String, primary_key=True),
    Column("at", Float, nullable=False),
    Column("reason", Text, nullable=False),
)
"""Channels whose receiver wants nothing more; what is due there waits."""

verdicts = Table(
    "verdicts",
    metadata,
    Column("row", _COUNTED, primary_key=True),
    Column("alert_id", String, nullable=False, index=True),
    Column("detector", String, nullable=False),
    Column("release", String, nullable=False),
    Column("verdict", String, nullable=False),
    Column("author", String, nullable=False),
    Column("note", Text, nullable=False),
    Column("at", Float, nullable=False),
)
"""What people said of alerts; the last word on an alert counts."""
