"""A client has its gateway as long as it is connected, however it ends; no Spark is needed to show that."""

import gc
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec
import psutil
import pytest

from lozenge.host.address import Grant, HostAddress, Request, connect, receive_line
from lozenge.host.server import HostServer
from lozenge.spark.internals.gateways import CLIENT
from tests.waiting import until

CAPACITY = 3
FINGERPRINT = "f1"


@dataclass
class Gateway:
    """Counts as closed once `may_close` is set."""

    port: int
    token: str = "t"
    may_close: threading.Event = field(default_factory=threading.Event)
    closed: bool = False

    def close(self) -> None:
        assert self.may_close.wait(30)
        self.closed = True


class Gateways:
    def __init__(self) -> None:
        self.all: list[Gateway] = []
        self.apps: list[str] = []
        self.slow = self.broken = False

    def open(self, app: str) -> Gateway:
        self.apps.append(app)
        if self.broken:
            raise RuntimeError("no port is left")
        self.all.append(opened := Gateway(len(self.all) + 1))
        if not self.slow:
            opened.may_close.set()
        return opened


@pytest.fixture
def gateways() -> Gateways:
    return Gateways()


@pytest.fixture
def server(gateways: Gateways) -> Iterator[HostServer]:
    running = HostServer(gateways.open, CAPACITY, psutil.Process(), FINGERPRINT)
    thread = threading.Thread(target=running.serve, daemon=True)
    thread.start()
    yield running
    running.close()
    thread.join(10)
    assert not thread.is_alive()


def ask(
    address: HostAddress, app: str = "rule", secret: str | None = None, fingerprint: str = FINGERPRINT
) -> tuple[socket.socket, Grant]:
    lease = asked(address, app, secret, fingerprint)
    return lease, msgspec.json.decode(receive_line(lease), type=Grant)


def asked(
    address: HostAddress, app: str = "rule", secret: str | None = None, fingerprint: str = FINGERPRINT
) -> socket.socket:
    lease = connect(address, 5)
    lease.sendall(msgspec.json.encode(Request(secret or address.secret, app, 1, fingerprint)) + b"\n")
    return lease


def test_a_client_gets_a_gateway_and_loses_it_with_its_connection(server: HostServer, gateways: Gateways) -> None:
    lease, grant = ask(server.address)
    assert (grant.port, grant.token, grant.refused) == (1, "t", "")
    assert (server.clients, server.idle_seconds()) == (1, 0.0)
    assert not gateways.all[0].closed
    lease.close()
    until(lambda: gateways.all[0].closed and server.clients == 0, "the end of the client")
    until(lambda: server.idle_seconds() > 0, "that it is idle")


def test_a_client_that_is_killed_loses_its_gateway(server: HostServer, gateways: Gateways) -> None:
    code = (
        "import sys, time; from lozenge.host.address import *; import msgspec\n"
        "address = msgspec.json.decode(sys.argv[1], type=HostAddress); lease = connect(address, 5)\n"
        "lease.sendall(msgspec.json.encode(Request(address.secret, 'rule', 1, 'f1')) + b'\\n')\n"
        "print(receive_line(lease), flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", code, msgspec.json.encode(server.address).decode()]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert b'"port":1' in client.stdout.readline()
        client.kill()
    until(lambda: gateways.all[0].closed, "the end of the client")


def in_a_cycle(gateways: Gateways) -> weakref.ref[Gateway]:
    """The newest gateway, which only the server refers to, and itself."""
    gateway = gateways.all.pop()
    vars(gateway)["itself"] = gateway
    return weakref.ref(gateway)


def test_a_host_keeps_no_object_of_a_client_that_is_gone(server: HostServer, gateways: Gateways) -> None:
    """The JVM has each Java object as long as Python has one for it, and py4j's are in cycles."""
    lease, _ = ask(server.address)
    kept = in_a_cycle(gateways)
    gc.disable()
    try:
        lease.close()
        until(lambda: kept() is None, "the end of what the host had of the client")
    finally:
        gc.enable()


class Finalised:
    """A garbage cycle; the collection that finds it says so, and waits."""

    def __init__(self) -> None:
        self.itself, self.found, self.may_end = self, threading.Event(), threading.Event()

    def __del__(self) -> None:
        self.found.set()
        assert self.may_end.wait(30)


def collect_until(found: threading.Event) -> None:
    """Collects again and again: a call during the collection for a client of before does nothing."""
    while not found.is_set():
        gc.collect()


def test_a_client_that_goes_during_a_collection_leaves_no_object(server: HostServer, gateways: Gateways) -> None:
    """Python has one collection at a time, and a call for a second one returns at once."""
    lease, _ = ask(server.address)
    kept = in_a_cycle(gateways)
    garbage = Finalised()
    found, may_end = garbage.found, garbage.may_end
    gc.disable()
    try:
        del garbage
        other = threading.Thread(target=collect_until, args=(found,), daemon=True)
        other.start()
        assert found.wait(30)
        lease.close()
        until(lambda: server.clients == 0, "the end of the client")
        assert kept() is not None
        may_end.set()
        until(lambda: kept() is None, "the end of what the host had of the client")
        other.join(30)
    finally:
        may_end.set()
        gc.enable()


def test_clients_have_names_of_their_own(server: HostServer) -> None:
    with ask(server.address, "a")[0], ask(server.address, "a")[0] as second:
        assert second
    third, grant = ask(server.address, "a")
    with third:
        assert grant.client == "a-3"


def test_a_wrong_secret_is_refused(server: HostServer, gateways: Gateways) -> None:
    lease, grant = ask(server.address, secret="another")
    with lease:
        assert grant.refused
        assert not grant.port
    assert not gateways.all


def test_a_client_of_another_version_is_refused(server: HostServer, gateways: Gateways) -> None:
    lease, grant = ask(server.address, fingerprint="f2")
    with lease:
        assert "another version" in grant.refused
    assert not gateways.all


def test_a_gateway_is_opened_for_its_app(server: HostServer, gateways: Gateways) -> None:
    with ask(server.address, "a")[0], ask(server.address, "b")[0]:
        assert gateways.apps == ["a", "b"]


def test_one_client_more_than_there_is_room_for_is_refused(server: HostServer) -> None:
    leases = [ask(server.address, f"app-{number}")[0] for number in range(CAPACITY)]
    more, grant = ask(server.address, "one-more")
    more.close()
    assert "3 clients" in grant.refused
    for lease in leases:
        lease.close()
    until(lambda: server.clients == 0, "room")
    again, grant = ask(server.address)
    again.close()
    assert not grant.refused


def test_a_successor_gets_in_once_the_previous_instance_is_gone(server: HostServer, gateways: Gateways) -> None:
    gateways.slow = True
    first, _ = ask(server.address)
    first.close()
    until(lambda: server.clients == 0, "that it is ending")
    gateways.slow = False
    with ask(server.address, "another-app")[0], asked(server.address) as successor:
        successor.settimeout(0.3)
        with pytest.raises(TimeoutError):
            receive_line(successor)
        assert len(gateways.all) == 2
        gateways.all[0].may_close.set()
        successor.settimeout(10)
        assert msgspec.json.decode(receive_line(successor), type=Grant).port == 3
        assert gateways.all[0].closed


@pytest.mark.parametrize("greeting", [b"\n", b"GET / HTTP/1.1\r\n", b'{"secret": 7}\n', b"\xff\n", b"", b"x" * 100_000])
def test_a_stranger_gets_nothing(server: HostServer, gateways: Gateways, greeting: bytes) -> None:
    with connect(server.address, 5) as stranger:
        with suppress(OSError):  # it may hang up before it has heard all of it
            stranger.sendall(greeting)
            stranger.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):
            assert stranger.recv(10) == b""
    assert not gateways.all
    assert server.clients == 0


def test_a_gateway_that_cannot_be_opened_leaves_no_client_behind(server: HostServer, gateways: Gateways) -> None:
    gateways.broken = True
    lease, grant = ask(server.address)
    lease.close()
    assert "no gateway" in grant.refused
    until(lambda: server.clients == 0, "that it is gone")
    gateways.broken = False
    assert not ask(server.address)[1].refused


def test_the_workers_of_a_client_end_with_it_and_those_of_others_do_not(server: HostServer) -> None:
    (mine, grant), (other, another) = ask(server.address, "mine"), ask(server.address, "other")
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    workers = [subprocess.Popen(sleep, env={CLIENT: client}) for client in (grant.client, another.client)]
    try:
        mine.close()
        until(lambda: workers[0].poll() is not None, "the end of its worker")
        assert workers[1].poll() is None
        other.close()
        until(lambda: workers[1].poll() is not None, "the end of the other")
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
