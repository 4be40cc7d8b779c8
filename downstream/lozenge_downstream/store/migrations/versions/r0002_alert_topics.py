"""The ids of the alert topics that the positions are of."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Adds the table; the first notifier that reads a topic records its id."""
    op.create_table(
        "alert_topics",
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("topic"),
    )
