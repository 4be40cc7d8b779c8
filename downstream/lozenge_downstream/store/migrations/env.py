"""Alembic runs this to apply or write scripts: on the connection, and in the transaction, of who called it."""

from alembic import context

from lozenge_downstream.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
