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

from annabelle.core.errors import NotAllowed, Unavailable
from annabelle.core.network_access import Address, AllowedPrivateHosts

Resolve = Callable[[str, int], Awaitable[list[str]]]

LOOKUP_SECONDS = 10.0
_NOT_FOUND = "Either this machine is offline, or there is no such address."

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST6 = ipaddress.ip_network("2000::/3")
# The standard library's own list changed between patch releases of Python, so what matters is written down here.
_SPECIAL4 = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
    )
)
# 2001::/23 has Teredo in it and 2002::/16 is 6to4: tunnels to an IPv4 address nobody here sees the end of.
_SPECIAL6 = tuple(
    ipaddress.ip_network(text)
    for text in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3ffe::/16", "3fff::/20")
)


class HostAccess:
    """Resolves a host to the addresses a tool may connect to."""

    def __init__(self, exceptions: AllowedPrivateHosts, resolve: Resolve | None = None) -> None:
        self._exceptions, self._resolve = exceptions, resolve or resolve_by_system

    async def resolve_allowed(self, host: str, port: int) -> list[str]:
        """Every permitted address of a host. One forbidden address among them forbids the host: which of them a
        connection takes must not be left to chance."""
        shown = printable_host(host)
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                literal = _parse_literal(host)
                texts = [literal] if literal else await self._resolve(host, port)
                found = [ipaddress.ip_address(text) for text in texts]
        except TimeoutError as error:
            raise Unavailable(f"Looking up {shown} took too long.", hint="Try again later.") from error
        except (OSError, ValueError) as error:
            raise Unavailable(f"{shown} was not found.", hint=_NOT_FOUND) from error
        if not found:
            raise Unavailable(f"{shown} has no address.", hint=_NOT_FOUND)
        named = self._exceptions.allows_name(host, port)
        for address in found:
            if not (named or is_public(address) or self._exceptions.allows_address(address, port)):
                raise NotAllowed(
                    f"{shown} is on a private or local network, which tools do not reach.",
                    hint=f"If the user wants it, they run: annabelle config set PRIVATE_HOSTS_ALLOWED {shown}:{port}",
                )
        return [str(address) for address in found]


def is_public(address: Address) -> bool:
    """Whether an address belongs to the open internet, also behind the forms that carry an IPv4 address inside."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return False
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address in _NAT64:
            return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        return address in _UNICAST6 and not any(address in network for network in _SPECIAL6)
    return not any(address in network for network in _SPECIAL4)


def _parse_literal(host: str) -> str | None:
    """The address a host is spelled as, in any of the ways the systems' own resolvers take (`0x7f.1`, `127.1`, octal):
    how it is read must not depend on which of them is asked. `localhost` always means this machine."""
    bare = host.lower().rstrip(".")
    if bare == "localhost" or bare.endswith(".localhost"):
        return "127.0.0.1"
    if ":" in bare:
        return bare
    try:
        return socket.inet_ntoa(socket.inet_aton(bare)) if bare[:1].isdecimal() else None
    except (OSError, ValueError):
        return None


async def resolve_by_system(host: str, port: int) -> list[str]:
    """Resolve with the system's resolver."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def printable_host(host: str) -> str:
    """A host shortened and stripped for use in a sentence."""
    return "".join(char for char in host[:100] if char.isprintable()) or "The address"
