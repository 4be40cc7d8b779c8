"""Where a host listens is a file that its user alone can read, and a message is one line."""

import os
import socket
import stat
from pathlib import Path

import pytest

from lozenge.host.address import (
    FILE,
    LARGEST,
    HostAddress,
    attend,
    publish,
    published,
    receive_line,
    seconds_unattended,
)

ADDRESS = HostAddress(pid=7, jvm_pid=8, port=1234, secret="s")


def test_what_was_published_is_found(tmp_path: Path) -> None:
    publish(tmp_path / "hosts" / "one", ADDRESS)
    assert published(tmp_path / "hosts" / "one") == ADDRESS


def test_a_host_knows_for_how_long_its_owner_has_not_attended_to_it(tmp_path: Path) -> None:
    assert seconds_unattended(tmp_path) == float("inf")
    attend(tmp_path)
    assert not (tmp_path / FILE).exists()
    publish(tmp_path, ADDRESS)
    os.utime(tmp_path / FILE, (1.0, 1.0))
    assert seconds_unattended(tmp_path) > 1e9
    attend(tmp_path)
    assert seconds_unattended(tmp_path) < 60
    assert published(tmp_path) == ADDRESS


def test_no_other_user_gets_to_the_secret(tmp_path: Path) -> None:
    folder = tmp_path / "host"
    folder.mkdir(mode=0o755)
    publish(folder, ADDRESS)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": "x", "port": 1, "secret": ""}', b"\xff\xfe"])
def test_a_damaged_file_is_as_none(tmp_path: Path, content: bytes) -> None:
    assert published(tmp_path) is None
    (tmp_path / FILE).write_bytes(content)
    assert published(tmp_path) is None


def test_a_message_that_does_not_end_is_an_error() -> None:
    here, there = socket.socketpair()
    with here, there:
        there.sendall(b'{"secret"')
        there.shutdown(socket.SHUT_WR)
        with pytest.raises(ConnectionResetError):
            receive_line(here)


def test_a_message_that_is_too_long_is_an_error() -> None:
    here, there = socket.socketpair()
    with here, there:
        there.settimeout(5)
        there.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * LARGEST)
        there.sendall(b"x" * (LARGEST + 8192))
        with pytest.raises(ValueError, match="too long"):
            receive_line(here)


def test_what_follows_a_message_stays_in_the_connection() -> None:
    here, there = socket.socketpair()
    with here, there:
        long = b"x" * 5_000 + b"\n"
        there.sendall(b"7\n" + long + b"rest")
        assert receive_line(here) == b"7\n"
        assert receive_line(here) == long
        assert here.recv(100) == b"rest"
