"""Routing versions and failed deliveries."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Brings revision 0001 to 0002."""
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
    op.create_index(
        "deliveries_failed",
        "deliveries",
        ["channel", "due_at"],
        unique=False,
        sqlite_where=sa.text("state = 'failed'"),
        postgresql_where=sa.text("state = 'failed'"),
    )
