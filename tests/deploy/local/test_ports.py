"""Servers get free ports that no outgoing connection takes from them."""

import socket
from pathlib import Path

import pytest

from lozenge.errors import UsageError
from lozenge_deploy.local import ports
from lozenge_deploy.local.ports import free_port, free_ports


def test_a_chosen_port_lies_outside_the_ephemeral_range() -> None:
    limits = Path("/proc/sys/net/ipv4/ip_local_port_range")
    first = int(limits.read_text().split()[0]) if limits.exists() else 49_152  # IANA's, for other systems
    chosen = {free_port(0) for _ in range(20)}
    assert len(chosen) > 1
    assert max(chosen) < first


def test_no_two_listeners_get_the_same_port(monkeypatch: pytest.MonkeyPatch) -> None:
    first = free_port(0)
    monkeypatch.setattr(ports, "_SERVER_PORTS", range(first, first + 20))
    assert all(len({first, *free_ports(first, 0, 0)}) == 3 for _ in range(50))


def test_it_says_when_no_port_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = free_port(0)
    monkeypatch.setattr(ports, "_SERVER_PORTS", range(taken, taken + 1))
    with pytest.raises(UsageError, match=f"no port from {taken} to {taken} is free"):
        free_ports(taken, 0)


def test_a_port_in_use_is_refused_by_its_number() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} on 127.0.0.1 is in use"):
            free_ports(0, port)
