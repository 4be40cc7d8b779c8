"""Where a host listens, as a file in its folder, and the two messages between it and a client.

A client sends one line with a `Request` and receives one line with a `Grant`. The connection is the lease: the host
takes the gateway back when it ends, however the client ends.
"""

import os
import socket
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from lozenge.process.atomic_write import replace

FILE = "host.json"
LOG = "host.log"
LARGEST = 64 * 1024
"""Bytes of a message."""


class HostAddress(msgspec.Struct, frozen=True):
    """Of a running host: its process and that of its JVM, its port on loopback, and the secret that a client shows."""

    pid: int
    jvm_pid: int
    port: int
    secret: str


class Request(msgspec.Struct, frozen=True):
    """A client asks for a gateway. `app` is what its sessions and log lines are called by.

    `fingerprint` is that of the client's Spark, which must be the host's (`lozenge.host.fingerprint`).
    """

    secret: str
    app: str
    pid: int
    fingerprint: str


class Grant(msgspec.Struct, frozen=True):
    """Port and token of the gateway, and the name of the client for its workers; or why there is none."""

    port: int = 0
    token: str = ""
    client: str = ""
    refused: str = ""


def publish(folder: Path, address: HostAddress) -> None:
    """Writes where the host of this folder listens, for this user alone."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.chmod(folder, 0o700)  # other users do not get to the file
    replace(folder / FILE, msgspec.json.encode(address).decode())


def published(folder: Path) -> HostAddress | None:
    """Where the host of this folder listened last; None if it never did or the file is damaged."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=HostAddress)
    except (OSError, msgspec.DecodeError):
        return None


def attend(folder: Path) -> None:
    """Says to the host of this folder that its owner runs: it does not end for want of clients."""
    with suppress(OSError):  # it does not listen yet, or has ended
        os.utime(folder / FILE)


def seconds_unattended(folder: Path) -> float:
    """For how long no owner has attended to the host of this folder."""
    try:
        return max(0.0, time.time() - (folder / FILE).stat().st_mtime)
    except OSError:
        return float("inf")


def published_by(folder: Path, pid: int) -> HostAddress | None:
    """Where the host of this folder listens whose process this is; None until it does."""
    address = published(folder)
    return address if address is not None and address.pid == pid else None


def connect(address: HostAddress, timeout: float) -> socket.socket:
    """A connection to a host; raises OSError if none listens there."""
    return socket.create_connection(("127.0.0.1", address.port), timeout=timeout)


def receive_line(connection: socket.socket, largest: int = LARGEST) -> bytes:
    """One message; raises OSError if the connection ends or times out before, ValueError beyond `largest` bytes.

    What follows the message stays in the connection, for the next reader.
    """
    received = b""
    while not received.endswith(b"\n"):
        if len(received) > largest:
            raise ValueError("the message is too long")
        part = connection.recv(4096, socket.MSG_PEEK)
        if not part:
            raise ConnectionResetError("the connection ended before the message")
        received += connection.recv(part.find(b"\n") + 1 or len(part))
    return received
