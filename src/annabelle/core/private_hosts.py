"""Which machines of their own network people have opened for tools: `PRIVATE_HOSTS_ALLOWED`."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from annabelle.core.errors import ConfigMistake

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Exceptions:
    """What the user opened: `nas.local`, `nas.local:8080`, `192.168.1.5`, `10.0.0.0/24`, `127.0.0.1:9000`."""

    names: frozenset[str] = frozenset()
    """Hosts, each with or without a port, lower case."""
    networks: tuple[Network, ...] = ()
    sockets: frozenset[tuple[Address, int]] = frozenset()

    @classmethod
    def parse(cls, text: str) -> Exceptions:
        names: set[str] = set()
        networks: list[Network] = []
        sockets: set[tuple[Address, int]] = set()
        for entry in filter(None, (part.strip().lower() for part in text.split(","))):
            host, port = _split_port(entry)
            try:
                if port is None:
                    networks.append(ipaddress.ip_network(host, strict=False))
                else:
                    sockets.add((ipaddress.ip_address(host), port))
            except ValueError:
                if not host or any(char in host for char in "/[]@ *"):
                    raise ConfigMistake(
                        "PRIVATE_HOSTS_ALLOWED has an entry that is neither a host nor a network.",
                        hint="Write it as nas.local, nas.local:8080, 192.168.1.5 or 10.0.0.0/24, separated by commas.",
                        field="PRIVATE_HOSTS_ALLOWED",
                    ) from None
                names.add(host.rstrip(".") if port is None else f"{host.rstrip('.')}:{port}")
        return cls(frozenset(names), tuple(networks), frozenset(sockets))

    def name(self, host: str, port: int) -> bool:
        spelled = host.lower().rstrip(".")
        return spelled in self.names or f"{spelled}:{port}" in self.names

    def address(self, address: Address, port: int) -> bool:
        return (address, port) in self.sockets or any(address in network for network in self.networks)


def _split_port(entry: str) -> tuple[str, int | None]:
    """`[::1]:80` and `nas.local:80` have a port, `::1` has none."""
    if entry.startswith("["):
        host, closed, port = entry[1:].partition("]")
        if not closed or (port and not (port.startswith(":") and _is_port(port[1:]))):
            return entry, None
        return host, int(port[1:]) if port else None
    host, colon, port = entry.rpartition(":")
    if colon and ":" not in host and _is_port(port):
        return host, int(port)
    return entry, None


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) <= 65535
