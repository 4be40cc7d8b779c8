"""Restricts requests to public addresses, whatever their URL resolves to (server-side request forgery).

A name is resolved once, when the connection is opened. All of its addresses are checked, and the connection goes to a
checked one. So a resolver that answers differently the second time (DNS rebinding) is never asked a second time.
Source: OWASP, Server-Side Request Forgery Prevention.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Iterable, Sequence

import httpcore2

from lozenge_downstream.channels.base.thread_pool import Threads

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_REFUSED: tuple[Network, ...] = tuple(
    map(
        ipaddress.ip_network,
        (
            "168.63.129.16/32",  # Azure's host, public by its number only
            "192.0.0.0/24",  # protocol assignments; a cloud's metadata is at 192.0.0.192
            "192.88.99.0/24",  # relays of 6to4, deprecated
            "64:ff9b:1::/48",  # translation within a network
            "100:0:0:1::/64",  # dummy prefix
            "2001::/23",  # protocol assignments
            "2001:db8::/32",  # documentation
            "3fff::/20",  # documentation
            "5f00::/16",  # segment routing
            "fec0::/10",  # site-local, deprecated and still routed in some networks
        ),
    )
)
"""Addresses that `is_global` of some release of Python takes for public. Source: IANA, Special-Purpose Addresses."""


def _within(address: Address) -> Address:
    """The IPv4 address that an IPv6 address embeds, if it does: packets go there."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        teredo = address.teredo
        return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None) or address
    return address


def is_allowed(address: Address, networks: Iterable[Network] = ()) -> bool:
    """Whether it is public or in one of `networks`."""
    real = _within(address)
    if any(real in network or address in network for network in networks):
        return True
    special = real.is_multicast or real.is_reserved or real.is_unspecified or any(real in net for net in _REFUSED)
    return real.is_global and not special


class Guard(httpcore2.AsyncNetworkBackend):
    """Connects to allowed addresses only; raises httpcore2.ConnectError for any other."""

    def __init__(self, networks: Sequence[Network], threads: Threads) -> None:
        self._networks, self._threads = networks, threads
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """As its base does."""
        addresses = await self._resolve(host, port, timeout)
        if refused := [a for a in addresses if not is_allowed(a, self._networks)]:
            raise httpcore2.ConnectError(
                f"{host} is {refused[0]}, which is not a public address; allow it by networks = [...] if it is intended"
            )
        for last, address in enumerate(addresses, 1 - len(addresses)):
            try:
                return await self._inner.connect_tcp(str(address), port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if last == 0:
                    raise
        raise httpcore2.ConnectError(f"{host} has no address")

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Refused."""
        raise httpcore2.ConnectError(f"{path} is no address")

    async def sleep(self, seconds: float) -> None:
        """As its base does."""
        await self._inner.sleep(seconds)

    async def _resolve(self, host: str, port: int, timeout: float | None) -> list[Address]:
        try:
            async with asyncio.timeout(timeout):
                found = await self._threads.run(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except TimeoutError:
            raise httpcore2.ConnectTimeout(f"resolving {host}") from None
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError(f"resolving {host}: {error}") from error
        return [ipaddress.ip_address(str(sockaddr[0]).partition("%")[0]) for *_, sockaddr in found]
