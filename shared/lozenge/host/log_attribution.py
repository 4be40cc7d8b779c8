"""Whose a line of a host's log is."""

import re
from collections.abc import Mapping
from typing import Any

APP = "spark-host"
"""The app of lines that are no client's."""
_OF_ONE_CLIENT = re.compile(r"Thread-\d+|stream execution thread for .*|Executor task launch worker for task .*", re.S)
"""The threads that work for one client: those of its gateway, of its queries and of their tasks."""


def app_of(line: Mapping[str, Any]) -> str:
    """The app of the client that the JVM wrote a line for; else that of hosts.

    A thread inherits the name of its client from the thread that started it. In a pool that serves all clients that is
    the first client, so only the name in a thread of one client counts. What Spark's scheduler logs of a client's
    task is the host's, as is the plain text of a Python worker.
    """
    app, thread = line.get("app"), line.get("thread")
    named = isinstance(app, str) and isinstance(thread, str) and _OF_ONE_CLIENT.fullmatch(thread)
    return str(app) if named and app else APP
