"""No request reaches what is not public, however its URL is written or its name resolves."""

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lozenge_downstream.channels.base.channel import Message, Result, Retry
from lozenge_downstream.channels.base.ssrf_guard import Guard, is_allowed
from lozenge_downstream.channels.base.thread_pool import threads
from lozenge_downstream.routing.config import Routing
from tests.downstream.conftest import SECRET

MESSAGE = Message("id-1", "{}", {})
HOSTS = (
    "127.0.0.1", "127.1", "127.0.1", "127.255.255.254", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1",
    "017700000001",
    "0", "0.0.0.0", "0x0", "localhost", "LOCALHOST", "localhost.", "127.0.0.1.",
    "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]", "[2001:0:7f00:1::]", "[fe80::1]", "[fc00::1]", "[fd12:3456::1]", "[ff02::1]",
    "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "192.0.2.1", "198.18.0.1", "203.0.113.7", "224.0.0.1", "240.0.0.1", "255.255.255.255", "3232235777",
    "user@127.0.0.1", "example.com@127.0.0.1", "①②⑦.⓪.⓪.①", "１２７.0.0.1", "127。0。0。1",
)  # fmt: skip


@contextmanager
def counting() -> Iterator[tuple[int, list[Any]]]:
    """A port of loopback, in both families where there are two, and every connection that reached it."""
    reached: list[Any] = []
    with socket.create_server(("", 0), family=socket.AF_INET) as server:
        server.settimeout(0.1)
        stop = threading.Event()

        def accept() -> None:
            while not stop.is_set():
                try:
                    connection, address = server.accept()
                except TimeoutError:
                    continue
                reached.append(address)
                connection.close()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield server.getsockname()[1], reached
        finally:
            stop.set()
            thread.join()


def send(url: str, networks: tuple[str, ...] = ()) -> Result:
    channel = {"type": "webhook", "url": url, "secret": {"env": "HOOK"}, "timeout": 2, "networks": networks}
    made = Routing.model_validate({"channels": {"c": channel}}).channels["c"]

    async def once() -> Result:
        async with made.sender() as sender:
            return await sender.send(MESSAGE)

    return asyncio.run(once())


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", SECRET)


def test_no_hostile_url_makes_a_connection() -> None:
    assert len(HOSTS) >= 40
    with counting() as (port, reached):
        for host in HOSTS:
            try:
                result = send(f"http://{host}:{port}/")
            except ValueError:
                continue  # the routing file would be refused for it
            assert isinstance(result, Retry), host
        assert reached == []
        assert isinstance(send(f"http://127.0.0.1:{port}/", ("127.0.0.0/8",)), Retry)
        assert len(reached) == 1, "a network that is allowed is reached"


def test_a_name_that_resolves_differently_the_second_time_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["8.8.8.8", "127.0.0.1"])
    connected: list[str] = []

    def rebinding(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    async def connect(self: Any, host: str, *_: Any, **__: Any) -> Any:
        connected.append(host)
        raise OSError

    async def connected_to(host: str) -> None:
        with threads(1) as own:
            await Guard((), own).connect_tcp(host, 80)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    monkeypatch.setattr("httpcore2.AnyIOBackend.connect_tcp", connect)
    with pytest.raises(OSError):
        asyncio.run(connected_to("rebinds.example"))
    assert connected == ["8.8.8.8"], "the connection goes to the address that was checked"


def test_one_private_address_among_public_ones_is_enough_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    def mixed(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in ("8.8.8.8", "10.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", mixed)
    with counting() as (port, reached):
        result = send(f"http://mixed.example:{port}/")
        assert reached == []
    assert isinstance(result, Retry)
    assert "10.0.0.1, which is not a public address" in result.error


@pytest.mark.parametrize(
    "address",
    [
        "168.63.129.16", "192.0.0.192", "192.0.0.9", "192.88.99.1", "::ffff:192.0.0.192", "64:ff9b::c000:c0",
        "2002:a83f:8110::", "64:ff9b:1::1", "100:0:0:1::1", "2001:1::1", "2001:db8::1", "3fff::1", "3fff:fff::1",
        "5f00::1", "fec0::1", "feff::1",
    ],
)  # fmt: skip
def test_a_special_address_is_refused_whatever_python_holds_it_for(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in (ipaddress.IPv4Address, ipaddress.IPv6Address):
        monkeypatch.setattr(kind, "is_global", property(lambda _: True))
        monkeypatch.setattr(kind, "is_reserved", property(lambda _: False))
    assert not is_allowed(ipaddress.ip_address(address))
    assert is_allowed(ipaddress.ip_address(address), (ipaddress.ip_network(address),)), "unless it is named"


@pytest.mark.parametrize(("address", "allowed"), [("8.8.8.8", True), ("2606:4700::1111", True), ("10.1.2.3", False)])
def test_public_addresses_are_allowed(address: str, allowed: bool) -> None:
    assert is_allowed(ipaddress.ip_address(address)) is allowed


def test_a_network_that_is_named_is_allowed_and_no_other() -> None:
    networks = (ipaddress.ip_network("10.1.0.0/16"),)
    assert is_allowed(ipaddress.ip_address("10.1.2.3"), networks)
    assert is_allowed(ipaddress.ip_address("::ffff:10.1.2.3"), networks)
    assert not is_allowed(ipaddress.ip_address("10.2.0.1"), networks)
