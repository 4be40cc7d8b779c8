"""The first revision of the store."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Makes the tables of an empty store."""
    op.create_table(
        "alert_counts",
        sa.Column("detector", sa.String(), nullable=False),
        sa.Column("minute", sa.BigInteger(), nullable=False),
        sa.Column("alerts", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("detector", "minute"),
    )
    op.create_table(
        "alert_topics",
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("topic"),
    )
    op.create_table(
        "case_alerts",
        sa.Column("case_id", sa.String(), nullable=False),
        sa.Column("alert_id", sa.String(), nullable=False),
        sa.Column("notification_id", sa.String(), nullable=True),
        sa.Column("muted", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("case_id", "alert_id"),
    )
    op.create_index("case_alerts_alert", "case_alerts", ["alert_id"], unique=False)
    op.create_index(
        "case_alerts_waiting",
        "case_alerts",
        ["case_id"],
        unique=False,
        sqlite_where=sa.text("notification_id IS NULL"),
        postgresql_where=sa.text("notification_id IS NULL"),
    )
    op.create_table(
        "cases",
        sa.Column("case_id", sa.String(), nullable=False),
        sa.Column("route", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("group", sa.Text(), nullable=False),
        sa.Column("opened_at", sa.Float(), nullable=False),
        sa.Column("notified_at", sa.Float(), nullable=True),
        sa.Column("last_evaluated_at", sa.Float(), nullable=True),
        sa.Column("next_evaluation_at", sa.Float(), nullable=False),
        sa.Column("resolves_at", sa.Float(), nullable=False),
        sa.Column("closed", sa.Boolean(), nullable=False),
        sa.Column("severity", sa.String(), nullable=False),
        sa.Column("scores", sa.Text(), nullable=False),
        sa.Column("notification_count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("case_id"),
    )
    op.create_index(
        "cases_due",
        "cases",
        ["next_evaluation_at"],
        unique=False,
        sqlite_where=sa.text("closed = 0"),
        postgresql_where=sa.text("closed = false"),
    )
    op.create_index(
        "cases_open",
        "cases",
        ["key"],
        unique=True,
        sqlite_where=sa.text("closed = 0"),
        postgresql_where=sa.text("closed = false"),
    )
    op.create_index(
        "cases_resolved",
        "cases",
        ["resolves_at"],
        unique=False,
        sqlite_where=sa.text("closed = 1"),
        postgresql_where=sa.text("closed = true"),
    )
    op.create_table(
        "deliveries",
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("notification_id", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.Float(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("channel", "notification_id"),
    )
    op.create_index(
        "deliveries_due",
        "deliveries",
        ["channel", "due_at"],
        unique=False,
        sqlite_where=sa.text("state = 'due'"),
        postgresql_where=sa.text("state = 'due'"),
    )
    op.create_index(
        "deliveries_failed",
        "deliveries",
        ["channel", "due_at"],
        unique=False,
        sqlite_where=sa.text("state = 'failed'"),
        postgresql_where=sa.text("state = 'failed'"),
    )
    op.create_index("deliveries_notification", "deliveries", ["notification_id"], unique=False)
    op.create_table(
        "disabled_channels",
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("channel"),
    )
    op.create_table(
        "failed_attempts",
        sa.Column("row", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("notification_id", sa.String(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("row"),
    )
    op.create_index(op.f("ix_failed_attempts_notification_id"), "failed_attempts", ["notification_id"], unique=False)
    op.create_table(
        "feedback",
        sa.Column("row", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("alert_id", sa.String(), nullable=False),
        sa.Column("detector", sa.String(), nullable=False),
        sa.Column("release", sa.String(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("row"),
    )
    op.create_index(op.f("ix_feedback_alert_id"), "feedback", ["alert_id"], unique=False)
    op.create_table(
        "inhibitors",
        sa.Column("rule", sa.String(), nullable=False),
        sa.Column("equal", sa.String(), nullable=False),
        sa.Column("two_sided", sa.Boolean(), nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.Column("alert_id", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("rule", "equal", "two_sided"),
    )
    op.create_index(op.f("ix_inhibitors_until"), "inhibitors", ["until"], unique=False)
    op.create_table(
        "leases",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "mutes",
        sa.Column("row", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("alert_id", sa.String(), nullable=False),
        sa.Column("route", sa.String(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("row"),
    )
    op.create_index(op.f("ix_mutes_alert_id"), "mutes", ["alert_id"], unique=False)
    op.create_table(
        "outbox",
        sa.Column("row", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("case_id", sa.String(), nullable=True),
        sa.Column("key", sa.LargeBinary(), nullable=True),
        sa.Column("value", sa.LargeBinary(), nullable=True),
        sa.Column("headers", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=True),
        sa.Column("detected_at", sa.Float(), nullable=True),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("published_at", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("row"),
        sa.UniqueConstraint("topic", "partition", "seq", name="outbox_seq"),
    )
    op.create_index(op.f("ix_outbox_id"), "outbox", ["id"], unique=False)
    op.create_index("outbox_case", "outbox", ["case_id", "row"], unique=False)
    op.create_index(
        "outbox_pending",
        "outbox",
        ["row"],
        unique=False,
        sqlite_where=sa.text("published_at IS NULL"),
        postgresql_where=sa.text("published_at IS NULL"),
    )
    op.create_index(
        "outbox_pending_seq",
        "outbox",
        ["topic", "partition", "seq"],
        unique=False,
        sqlite_where=sa.text("published_at IS NULL"),
        postgresql_where=sa.text("published_at IS NULL"),
    )
    op.create_table(
        "positions",
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("next", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("topic", "partition"),
    )
    op.create_table(
        "received_alerts",
        sa.Column("row", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("alert_id", sa.String(), nullable=True),
        sa.Column("detector", sa.String(), nullable=True),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("received_at", sa.Float(), nullable=False),
        sa.Column("body", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("row"),
    )
    op.create_index(op.f("ix_received_alerts_alert_id"), "received_alerts", ["alert_id"], unique=False)
    op.create_index(
        "received_alerts_rate_limited",
        "received_alerts",
        ["detector"],
        unique=False,
        sqlite_where=sa.text("outcome = 'rate limited'"),
        postgresql_where=sa.text("outcome = 'rate limited'"),
    )
    op.create_table(
        "routing_versions",
        sa.Column("row", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("problems", sa.Text(), nullable=True),
        sa.Column("loaded_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("row"),
    )
    op.create_table(
        "sequences",
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("next", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("topic", "partition"),
    )
    op.create_table(
        "silences",
        sa.Column("silence_id", sa.String(), nullable=False),
        sa.Column("matchers", sa.Text(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("starts_at", sa.Float(), nullable=False),
        sa.Column("ends_at", sa.Float(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("silence_id"),
    )
