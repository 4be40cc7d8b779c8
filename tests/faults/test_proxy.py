"""The proxy: bytes pass as they came, and each toxic does what it says."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.faults.proxy import LOOPBACK, Proxy, Toxic

DEADLINE_SECONDS = 20.0


@pytest.fixture
def echo() -> Iterator[str]:
    """A server that sends back what it gets; on a half close it sends the rest and closes."""
    server = socket.create_server((LOOPBACK, 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=[connection], daemon=True).start()

    def answer(connection: socket.socket) -> None:
        with connection:
            try:
                while chunk := connection.recv(1 << 16):
                    connection.sendall(chunk)
                connection.sendall(b"bye")
            except OSError:
                return

    threading.Thread(target=serve, daemon=True).start()
    yield f"{LOOPBACK}:{server.getsockname()[1]}"
    server.shutdown(socket.SHUT_RDWR)
    server.close()


@pytest.fixture
def proxy(echo: str) -> Iterator[Proxy]:
    with Proxy(echo) as proxy:
        yield proxy


@pytest.fixture
def client(proxy: Proxy) -> Iterator[socket.socket]:
    with socket.create_connection((LOOPBACK, proxy.port)) as client:
        client.settimeout(DEADLINE_SECONDS)
        assert there_and_back(client, b"hello") == b"hello"
        yield client


def there_and_back(client: socket.socket, sent: bytes) -> bytes:
    client.sendall(sent)
    received = b""
    while len(received) < len(sent) and (chunk := client.recv(1 << 16)):
        received += chunk
    return received


def test_bytes_pass_unchanged_in_order_and_slices(proxy: Proxy, client: socket.socket) -> None:
    sent = bytes(range(256)) * 4000
    sender = threading.Thread(target=client.sendall, args=[sent])
    with proxy.given(Toxic(slice_bytes=1000, latency=0.01, jitter=0.01)):
        sender.start()
        received = b""
        while len(received) < len(sent):
            received += client.recv(1 << 16)
        sender.join()
    assert received == sent


def test_a_latency_holds_each_way(proxy: Proxy, client: socket.socket) -> None:
    with proxy.given(Toxic(latency=0.3)):
        began = time.monotonic()
        assert there_and_back(client, b"x") == b"x"
    assert time.monotonic() - began >= 0.6


def test_a_narrow_line_takes_its_time(proxy: Proxy, client: socket.socket) -> None:
    with proxy.given(Toxic(bandwidth=100_000, slice_bytes=1000)):
        began = time.monotonic()
        assert len(there_and_back(client, b"x" * 20_000)) == 20_000
    assert time.monotonic() - began >= 0.19


def test_silence_loses_nothing_and_ends(proxy: Proxy, client: socket.socket) -> None:
    with proxy.given(Toxic(silence=True)):
        client.sendall(b"held")
        client.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.recv(4)
    client.settimeout(DEADLINE_SECONDS)
    assert client.recv(4) == b"held"


def test_a_reset_is_one(proxy: Proxy, client: socket.socket) -> None:
    proxy.reset()
    with pytest.raises(ConnectionResetError):
        client.recv(1)


def test_a_half_close_lets_the_servers_last_words_through(proxy: Proxy, client: socket.socket) -> None:
    proxy.half_close()
    assert client.recv(3) == b"bye"
    assert client.recv(1) == b""


def test_a_limit_ends_the_connection_behind_so_many_bytes(proxy: Proxy, client: socket.socket) -> None:
    with proxy.given(Toxic(limit=100)):
        assert there_and_back(client, b"x" * 50) == b"x" * 50
        client.sendall(b"x" * 60)
        with pytest.raises(ConnectionResetError):
            client.recv(60)


def test_a_close_may_come_late(proxy: Proxy, client: socket.socket) -> None:
    with proxy.given(Toxic(slow_close=0.3)):
        began = time.monotonic()
        client.shutdown(socket.SHUT_WR)
        assert client.recv(3) == b"bye"
    assert time.monotonic() - began >= 0.3


def test_without_its_server_it_is_away_and_comes_back_with_it(proxy: Proxy) -> None:
    with socket.create_server((LOOPBACK, 0)) as nobody:
        target = f"{LOOPBACK}:{nobody.getsockname()[1]}"
    with Proxy(target) as away, socket.create_connection((LOOPBACK, away.port)) as client:
        client.settimeout(DEADLINE_SECONDS)
        with pytest.raises(ConnectionResetError):
            client.recv(1)
