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

# SQLite numbers rows only by a plain INTEGER key.
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
"""The next offset to read of each alert partition. It decides, and not the offset of the consumer group."""

alert_topics = Table(
    "alert_topics",
    metadata,
    Column("topic", String, primary_key=True),
    Column("id", String, nullable=False),
)
"""The id of each alert topic that the positions are of. A topic that was created again has another id."""

sequences = Table(
    "sequences",
    metadata,
    Column("topic", String, primary_key=True),
    Column("partition", Integer, primary_key=True),
    Column("next", BigInteger, nullable=False),
)
"""The next `seq` of each output partition."""

leases = Table(
    "leases",
    metadata,
    Column("name", String, primary_key=True),
    Column("holder", String, nullable=False),
    Column("until", Float, nullable=False),
)
"""Who may do what one notifier alone may do: publish, and send to a channel."""

received_alerts = Table(
    "received_alerts",
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
"""Every record that was read, its outcome and the reason; `body` is the alert. Duplicates are found by it."""
is_rate_limited = received_alerts.c.outcome == sql.literal_column("'rate limited'")
_partial("received_alerts_rate_limited", received_alerts.c.detector, where=is_rate_limited)

alert_counts = Table(
    "alert_counts",
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
    Column("notified_at", Float),
    Column("last_evaluated_at", Float),
    Column("next_evaluation_at", Float, nullable=False),
    Column("resolves_at", Float, nullable=False),
    Column("closed", Boolean, nullable=False),
    Column("severity", String, nullable=False),
    Column("scores", Text, nullable=False),
    Column("notification_count", Integer, nullable=False),
)
"""`key` is a digest of route and group. No two open cases have the same."""
is_open = cases.c.closed == sql.false()
_partial("cases_open", cases.c.key, where=is_open, unique=True)
_partial("cases_due", cases.c.next_evaluation_at, where=is_open)
is_closed = cases.c.closed == sql.true()
_partial("cases_resolved", cases.c.resolves_at, where=is_closed)

case_alerts = Table(
    "case_alerts",
    metadata,
    Column("case_id", String, primary_key=True),
    Column("alert_id", String, primary_key=True),
    Column("notification_id", String),
    Column("muted", Text),
)
"""The alerts of a case: the notification that has each, or else why the last evaluation muted it."""
is_waiting = case_alerts.c.notification_id.is_(None)
_partial("case_alerts_waiting", case_alerts.c.case_id, where=is_waiting)
Index("case_alerts_alert", case_alerts.c.alert_id)

mutes = Table(
    "mutes",
    metadata,
    Column("row", _COUNTED, primary_key=True),
    Column("alert_id", String, nullable=False, index=True),
    Column("route", String, nullable=False),
    Column("at", Float, nullable=False),
    Column("reason", Text, nullable=False),
)
"""Each time that an alert was muted for another reason than before."""

inhibitors = Table(
    "inhibitors",
    metadata,
    Column("rule", String, primary_key=True),
    Column("equal", String, primary_key=True),
    Column("two_sided", Boolean, primary_key=True),
    Column("until", Float, nullable=False, index=True),
    Column("alert_id", String, nullable=False),
)
"""Alerts that inhibit others: for each rule and each value of its `equal`, the one that is active longest.

A `two_sided` inhibitor also matches the rule's target, and inhibits only what does not match the rule's source.
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
"""Records on their way to Kafka; `published_at` is null until the relay's transaction is known to be committed.

A notification has a case, and `body`: its JSON text for channels. `row` is the order of the notifications of a case.
"""
is_pending = outbox.c.published_at.is_(None)
_partial("outbox_pending", outbox.c.row, where=is_pending)
# Without it, marking records as published would read every record that was ever marked.
_partial("outbox_pending_seq", outbox.c.topic, outbox.c.partition, outbox.c.seq, where=is_pending)
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
"""One notification on one channel: due at `due_at`, or sent or failed at that time."""
is_due = deliveries.c.state == sql.literal_column(f"'{DUE}'")
"""Literal, because SQLite uses a partial index only for a condition that is written out in the statement."""
_partial("deliveries_due", deliveries.c.channel, deliveries.c.due_at, where=is_due)
is_failed = deliveries.c.state == sql.literal_column(f"'{FAILED}'")
_partial("deliveries_failed", deliveries.c.channel, deliveries.c.due_at, where=is_failed)
Index("deliveries_notification", deliveries.c.notification_id)

failed_attempts = Table(
    "failed_attempts",
    metadata,
    Column("row", _COUNTED, primary_key=True),
    Column("notification_id", String, nullable=False, index=True),
    Column("channel", String, nullable=False),
    Column("at", Float, nullable=False),
    Column("error", Text, nullable=False),
)
"""Each attempt of a delivery that failed. `deliveries` has the result of the last attempt too."""

disabled_channels = Table(
    "disabled_channels",
    metadata,
    Column("channel", String, primary_key=True),
    Column("at", Float, nullable=False),
    Column("reason", Text, nullable=False),
)
"""Channels whose receiver refuses all messages; their deliveries wait."""

feedback = Table(
    "feedback",
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
"""The feedback of analysts; the last verdict on an alert counts."""

routing_versions = Table(
    "routing_versions",
    metadata,
    Column("row", _COUNTED, primary_key=True),
    Column("version", String, nullable=False),
    Column("file", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("problems", Text),
    Column("loaded_at", Float, nullable=False),
)
"""Each version of a routing file that a notifier has read, the newest last; `problems` is why one is not used."""
