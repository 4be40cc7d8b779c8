"""Serves the notifier's API from a thread of its own."""

import socket
import threading
import time
from types import TracebackType
from typing import Self

import uvicorn
from starlette.applications import Starlette

from lozenge.process.logging import logger

START_SECONDS = 10.0


class ApiServer:
    """A context manager that serves `app` at `bind` ("host:port"). If that is empty or in use, it serves nothing."""

    def __init__(self, app: Starlette, bind: str) -> None:
        self._socket = _listening(bind) if bind else None
        config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", server_header=False)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="api", daemon=True)

    @property
    def port(self) -> int:
        """The port that it listens on; 0 if none."""
        return int(self._socket.getsockname()[1]) if self._socket else 0

    def __enter__(self) -> Self:
        if self._socket is not None:
            self._thread.start()
            deadline = time.monotonic() + START_SECONDS
            while not self._server.started and self._thread.is_alive() and time.monotonic() < deadline:
                time.sleep(0.01)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        if self._socket is not None:
            self._server.should_exit = True
            self._thread.join(START_SECONDS)
            self._socket.close()

    def _serve(self) -> None:
        assert self._socket is not None
        self._server.run(sockets=[self._socket])


def _listening(bind: str) -> socket.socket | None:
    host, _, port = bind.rpartition(":")
    try:
        return socket.create_server((host.strip("[]"), int(port)), family=_family(host))
    except (OSError, UnicodeError) as error:  # notifications continue without the API
        hint = "set LOZENGE_DOWNSTREAM_BIND to a free address and restart"
        logger().error(f"the API cannot listen at {bind}: {getattr(error, 'strerror', None) or error}", hint=hint)
        return None


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if host.startswith("[") else socket.AF_INET
