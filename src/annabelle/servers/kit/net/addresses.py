"""Which machines a tool may reach: public ones, and those the user named.

A name is looked up once and the connection goes to the very address that was judged, so a name that changes its mind
between the check and the use (rebinding) gains nothing. Odd spellings (`0x7f.1`, `2130706433`, `[::ffff:127.0.0.1]`)
are judged by the address they mean.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from annabelle.core.errors import NotAllowed, Unavailable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[list[str]]]

_NAT64 = ipaddress.ip_network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class Exceptions:
    """What the user opened: `nas.local`, `nas.local:8080`, `192.168.1.5`, `10.0.0.0/24`, `127.0.0.1:9000`."""

    names: frozenset[str] = frozenset()
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Exceptions:
        names: set[str] = set()
        networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        for entry in filter(None, (part.strip().lower() for part in text.split(","))):
            try:
                networks.append(ipaddress.ip_network(entry, strict=False))
            except ValueError:
                names.add(entry)
        return cls(frozenset(names), tuple(networks))

    def name(self, host: str, port: int) -> bool:
        spelled = host.lower().rstrip(".")
        return spelled in self.names or f"{spelled}:{port}" in self.names

    def address(self, address: Address, port: int) -> bool:
        spelled = f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"
        return spelled in self.names or any(address in network for network in self.networks)


class Reach:
    """Turns a host into the addresses one may connect to."""

    def __init__(self, exceptions: Exceptions, resolve: Resolve | None = None) -> None:
        self._exceptions, self._resolve = exceptions, resolve or resolve_by_system

    async def addresses(self, host: str, port: int) -> list[str]:
        """Every permitted address of a host. One forbidden address among them forbids the host: which of them a
        connection takes must not be left to chance."""
        try:
            found = [ipaddress.ip_address(text) for text in await self._resolve(host, port)]
        except (OSError, UnicodeError) as error:
            raise Unavailable(f"{host} was not found.", hint="Check the spelling of the address.") from error
        if not found:
            raise Unavailable(f"{host} has no address.")
        named = self._exceptions.name(host, port)
        for address in found:
            if not (named or is_public(address) or self._exceptions.address(address, port)):
                raise NotAllowed(
                    f"{host} is on a private or local network, which tools do not reach.",
                    hint=f"To allow it, add it to PRIVATE_HOSTS_ALLOWED: annabelle config set … {host}:{port}",
                )
        return [str(address) for address in found]


def is_public(address: Address) -> bool:
    """Whether an address belongs to the open internet, also behind the forms that carry an IPv4 address inside."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address.scope_id is not None or address.is_site_local:
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved and not address.is_unspecified


async def resolve_by_system(host: str, port: int) -> list[str]:
    """As every program on this machine would find it."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
