"""Gives gateways to clients and takes them back; one thread for each client."""

import gc
import os
import secrets
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import msgspec
import psutil

from lozenge.host.address import Grant, HostAddress, Request, receive_line
from lozenge.process.logging import logger
from lozenge.spark.internals.gateways import CLIENT

_GREETING_SECONDS = 10.0
"""A client sends its request at once."""
_OLDEST = 2
"""The generation that only a full collection has."""
_COLLECTION_SECONDS = 0.05
"""A full collection of a host takes about as long."""


class ClientGateway(Protocol):
    """A gateway for one client, as `lozenge.spark.internals.gateways` makes it."""

    port: int
    token: str

    def close(self) -> None:
        """Ends what its client has running."""
        ...


class HostServer:
    """Listens on loopback. `open_gateway` makes one for an app; `capacity` is how many clients there may be at once.

    `process` is that of the JVM, which starts the Python workers of clients. A client has the same `fingerprint`.
    """

    def __init__(
        self, open_gateway: Callable[[str], ClientGateway], capacity: int, process: psutil.Process, fingerprint: str
    ) -> None:
        self._open_gateway, self._capacity, self._process = open_gateway, capacity, process
        self._fingerprint = fingerprint
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._secret = secrets.token_hex(32)
        self._changed = threading.Condition()
        self._clients = 0
        self._ending: Counter[str] = Counter()  # by app
        self._number = 0
        self._idle_since = time.monotonic()

    @property
    def address(self) -> HostAddress:
        """Where it listens."""
        return HostAddress(os.getpid(), self._process.pid, self._listener.getsockname()[1], self._secret)

    @property
    def clients(self) -> int:
        """How many there are."""
        with self._changed:
            return self._clients

    def idle_seconds(self) -> float:
        """For how long there has been no client; 0 while there is one."""
        with self._changed:
            return 0.0 if self._clients or self._ending.total() else time.monotonic() - self._idle_since

    def serve(self) -> None:
        """Accepts clients until `close`."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._client, args=[connection], daemon=True).start()

    def close(self) -> None:
        """Accepts no more clients."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # closing alone does not end `accept`
        self._listener.close()

    def _client(self, connection: socket.socket) -> None:
        with connection:
            try:
                connection.settimeout(_GREETING_SECONDS)
                request = msgspec.json.decode(receive_line(connection), type=Request)
            except (OSError, ValueError, msgspec.DecodeError):
                return  # nobody of ours
            if not secrets.compare_digest(request.secret, self._secret):
                _answer(connection, Grant(refused="the secret is that of another host"))
                return
            if request.fingerprint != self._fingerprint:
                _answer(connection, Grant(refused="its Spark, jars or flags are of another version"))
                return
            with suppress(OSError):
                self._lease(connection, request)
            _collect()  # py4j's objects are in cycles, and the JVM keeps what they stand for as long as they exist

    def _lease(self, connection: socket.socket, request: Request) -> None:
        """Lets a client in once the previous instances of its app are gone, and waits for its end."""
        with self._changed:
            self._changed.wait_for(lambda: not self._ending[request.app])
            if self._clients >= self._capacity:
                _answer(connection, Grant(refused=f"it has its {self._capacity} clients"))
                return
            self._clients += 1
            self._number += 1
            client = f"{request.app}-{self._number}"
        gateway: ClientGateway | None = None
        try:
            try:
                gateway = self._open_gateway(request.app)
            except Exception as error:  # py4j's, from a JVM in trouble
                logger().error(f"opening a gateway for {client}: {type(error).__name__}: {error}")
                _answer(connection, Grant(refused="it could open no gateway; its log says why"))
                return
            _answer(connection, Grant(gateway.port, gateway.token, client))
            logger().info(f"{client} has a gateway", pid=request.pid, clients=self.clients)
            connection.settimeout(None)
            while connection.recv(4096):  # ends with the client
                pass
        finally:
            self._end(request.app, client, gateway)

    def _end(self, app: str, client: str, gateway: ClientGateway | None) -> None:
        with self._changed:
            self._ending[app] += 1
            self._clients -= 1
        began = time.monotonic()
        try:
            if gateway is not None:
                gateway.close()
            self._end_workers(client)
        except Exception as error:  # the JVM is gone, or is about to be
            logger().warning(f"ending what {client} had running: {type(error).__name__}: {error}")
        finally:
            with self._changed:
                self._ending[app] -= 1
                self._idle_since = time.monotonic()
                self._changed.notify_all()
        logger().info(f"{client} is gone", seconds=round(time.monotonic() - began, 3), clients=self.clients)

    def _end_workers(self, client: str) -> None:
        """The Python workers of Spark outlive the process whose functions they ran."""
        for process in self._process.children(recursive=True):
            with suppress(psutil.Error):
                if process.environ().get(CLIENT) == client:
                    process.kill()


def _answer(connection: socket.socket, grant: Grant) -> None:
    connection.sendall(msgspec.json.encode(grant) + b"\n")


def _collect() -> None:
    """Has a full collection begin after the call: `gc.collect` alone does nothing while another one runs."""
    began = threading.Event()

    def starts(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == _OLDEST:
            began.set()

    gc.callbacks.append(starts)
    try:
        gc.collect()
        while not began.wait(_COLLECTION_SECONDS):
            gc.collect()
    finally:
        gc.callbacks.remove(starts)
