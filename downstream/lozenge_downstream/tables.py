"""The notifier's tables. Times are seconds since the epoch, UTC.

`SCHEMA_VERSION` counts up with every change here; `Store` refuses a store that is newer than itself.
"""

import sqlalchemy as sql
from sqlalchemy import (
    BigInteger,
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

SCHEMA_VERSION = 1
DUE, SENT, FAILED = "due", "sent", "failed"

# Only a plain INTEGER key counts up by itself in SQLite.
_COUNTED = BigInteger().with_variant(Integer, "sqlite")

metadata = MetaData()

meta = Table("meta", metadata, Column("key", String, primary_key=True), Column("value", Integer, nullable=False))
"""`schema_version`, and `epoch`: the number of notifiers that ever opened this store."""

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

decisions = Table(
    "decisions",
    metadata,
    Column("row", _COUNTED, primary_key=True),
    Column("topic", String, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("offset", BigInteger, nullable=False),
    Column("alert_id", String, index=True),
    Column("outcome", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("notification_id", String, index=True),
    Column("decided_at", Float, nullable=False),
)
"""What was decided about every record read, and why; also the memory that makes repeats collapse."""

outbox = Table(
    "outbox",
    metadata,
    Column("row", _COUNTED, primary_key=True),
    Column("topic", String, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("id", String, nullable=False, index=True),
    Column("key", LargeBinary),
    Column("value", LargeBinary),
    Column("headers", Text, nullable=False),
    Column("detected_at", Float),
    Column("published_at", Float),
    UniqueConstraint("topic", "partition", "seq"),
)
"""Records on their way to Kafka; `published_at` is null until the relay's transaction is known to hold."""
_pending = outbox.c.published_at.is_(None)
Index("outbox_pending", outbox.c.row, sqlite_where=_pending, postgresql_where=_pending)

deliveries = Table(
    "deliveries",
    metadata,
    Column("webhook", String, primary_key=True),
    Column("notification_id", String, primary_key=True),
    Column("state", String, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due_at", Float, nullable=False),
    Column("body", Text, nullable=False),
    Column("detected_at", Float),
    Column("error", Text),
)
"""One notification to one webhook: due (again) at `due_at`, sent, or failed for good."""
is_due = deliveries.c.state == sql.literal_column(f"'{DUE}'")
"""Literal, because SQLite takes a partial index only for a condition that it can read in the statement."""
Index("deliveries_due", deliveries.c.webhook, deliveries.c.due_at, sqlite_where=is_due, postgresql_where=is_due)
