"""A session of a host's JVM for this process, in place of a JVM of its own."""

import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession

from lozenge.errors import SparkGone
from lozenge.host.address import Grant, Request, connect, published, receive_line
from lozenge.host.cost import SharedMeter
from lozenge.host.fingerprint import fingerprint
from lozenge.spark.internals import gateways
from lozenge.spark.jvm_watch import end_named
from lozenge.spark.session import use_utc
from lozenge.spark.session_provider import SessionRequest

_CONNECT_SECONDS = 10.0
_GRANT_SECONDS = 60.0
"""A previous instance of the same name may still be ending."""
_LEASES: set[socket.socket] = set()


class SharedJvm:
    """Gives sessions of the JVM of the host in `folder`.

    Cores, memory, the largest result and static configuration are those of the host, whatever a request says.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lease: socket.socket | None = None

    def start(self, request: SessionRequest) -> SparkSession:
        """Takes tenths of a second, and puts this process into UTC.

        Raises SparkGone if there is no such host, or if it has no place.
        """
        doing = f"starting {request.app} on the Spark host in {self._folder}"
        if (address := published(self._folder)) is None:
            raise SparkGone(f"{doing}: no host runs there", hint="a restart takes another one")
        try:
            lease = connect(address, _CONNECT_SECONDS)
            lease.settimeout(_GRANT_SECONDS)
            asked = Request(address.secret, request.app, os.getpid(), fingerprint())
            lease.sendall(msgspec.json.encode(asked) + b"\n")
            grant = msgspec.json.decode(receive_line(lease), type=Grant)
        except (OSError, ValueError, msgspec.DecodeError) as error:
            raise SparkGone(f"{doing}: {error}", hint="the host has ended; a restart takes another one") from error
        if grant.refused:
            lease.close()
            raise SparkGone(f"{doing}: {grant.refused}", hint="a restart takes another host")
        use_utc()  # as a process with a JVM of its own
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        self._lease = lease
        _LEASES.add(lease)  # the host takes the gateway back when this process ends, and not before
        return gateways.connected(grant.port, grant.token, grant.client)

    @contextmanager
    def held(self, spark: SparkSession, doing: str, stopping: Callable[[], bool]) -> Iterator[None]:
        """Gives the session back after the block; the host stops what still runs in it."""
        try:
            with end_named(spark, doing, stopping):
                yield
        finally:
            self.close()

    def meter(self, spark: SparkSession) -> SharedMeter:
        """Measures this process, and its part of the host."""
        return SharedMeter(spark)

    def close(self) -> None:
        """Gives the session back."""
        if self._lease is not None:
            with suppress(OSError):
                self._lease.shutdown(socket.SHUT_RDWR)
            self._lease.close()
            _LEASES.discard(self._lease)
            self._lease = None
