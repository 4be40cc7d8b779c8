"""Free ports on loopback for servers."""

import random
import socket
from contextlib import ExitStack

from lozenge.errors import UsageError

LOOPBACK = "127.0.0.1"
_SERVER_PORTS = range(20_000, 32_768)
"""Below the ports that systems give to outgoing connections."""


def free_port(wanted: int) -> int:
    """`wanted` if it can be bound, or a free port for 0; raises UsageError if it is in use."""
    return free_ports(wanted)[0]


def free_ports(*wanted: int) -> list[int]:
    """Different ports, one for each in `wanted`: itself if it can be bound, or a free one for 0.

    A free port is below those that systems give to outgoing connections. Such a connection could otherwise take the
    port before the broker binds it, or while the broker is down. Raises UsageError if a port is in use.
    """
    with ExitStack() as bound:
        asked = {port: bound.enter_context(socket.socket()) for port in wanted if port}
        for port, probe in asked.items():
            if refusal := _bind(probe, port):
                raise UsageError(
                    f"starting the embedded broker: port {port} on {LOOPBACK} is in use ({refusal.strerror})",
                    hint=f"stop what listens there (`lsof -i :{port}` names it) or choose another port; 0 takes any",
                )
        return [port or _bind_any(bound.enter_context(socket.socket())) for port in wanted]


def _bind_any(probe: socket.socket) -> int:
    for port in random.SystemRandom().sample(_SERVER_PORTS, min(100, len(_SERVER_PORTS))):
        if not _bind(probe, port):
            return port
    raise UsageError(
        f"starting the embedded broker: no port from {_SERVER_PORTS[0]} to {_SERVER_PORTS[-1]} is free on {LOOPBACK}",
        hint="choose a port, or stop servers that are not needed (`ss -ltn` lists them)",
    )


def _bind(probe: socket.socket, port: int) -> OSError | None:
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        probe.bind((LOOPBACK, port))
        probe.listen()  # with SO_REUSEADDR a second socket may bind the port until one listens
    except OSError as refusal:
        return refusal
    return None
