"""Brings a store of an earlier version up to date, in the transaction that opens it: all of it or nothing."""

import sqlalchemy as sql

from lozenge_downstream.store.tables import metadata

_REPLACED = ("decisions", "outbox", "deliveries")
_COPIES = (
    'INSERT INTO arrivals ("row", topic, partition, "offset", alert_id, outcome, reason, received_at) '
    'SELECT "row", topic, partition, "offset", alert_id, '
    "CASE outcome WHEN 'notified' THEN 'accepted' WHEN 'collapsed' THEN 'repeated' ELSE outcome END, reason, "
    "decided_at FROM old_decisions",
    'INSERT INTO outbox ("row", topic, partition, seq, id, "key", value, headers, body, detected_at, created_at, '
    "published_at) "
    'SELECT "row", topic, partition, seq, id, "key", value, headers, '
    "(SELECT max(body) FROM old_deliveries d WHERE d.notification_id = old_outbox.id), detected_at, "
    "coalesce(published_at, detected_at, 0), published_at FROM old_outbox",
    "INSERT INTO deliveries (channel, notification_id, state, attempts, due_at, error) "
    "SELECT webhook, notification_id, state, attempts, due_at, error FROM old_deliveries",
)


def up_to_date(connection: sql.Connection, version: int) -> None:
    """Makes a store of an earlier `version` one of this."""
    if version == 1:
        _from_version_1(connection)
    else:
        connection.exec_driver_sql("DROP INDEX IF EXISTS ix_outbox_case_id")  # `outbox_case` does what it did
        metadata.create_all(connection)


def _from_version_1(connection: sql.Connection) -> None:
    """Takes over what was read, sent and is due; what was read then is known by its id, and has no text."""
    for table in _REPLACED:
        connection.exec_driver_sql(f"CREATE TABLE old_{table} AS SELECT * FROM {table}")
        connection.exec_driver_sql(f"DROP TABLE {table}")
    metadata.create_all(connection)
    for statement in _COPIES:
        connection.exec_driver_sql(statement)
    if connection.dialect.name == "postgresql":  # copied numbers do not count up by themselves
        for table in ("arrivals", "outbox"):
            newest = f'SELECT coalesce(max("row"), 1) FROM {table}'
            connection.exec_driver_sql(f"SELECT setval(pg_get_serial_sequence('{table}', 'row'), ({newest}))")
    for table in _REPLACED:
        connection.exec_driver_sql(f"DROP TABLE old_{table}")
