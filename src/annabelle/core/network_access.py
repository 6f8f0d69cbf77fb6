"""Private hosts that tools may reach, and certificate authorities they trust."""

from __future__ import annotations

import functools
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from annabelle.core.errors import ConfigMistake

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class AllowedPrivateHosts:
    """Hosts the user allowed: `nas.local`, `nas.local:8080`, `192.168.1.5`, `10.0.0.0/24`, `127.0.0.1:9000`."""

    names: frozenset[str] = frozenset()
    """Lower-case hosts, with or without a port."""
    networks: tuple[Network, ...] = ()
    sockets: frozenset[tuple[Address, int]] = frozenset()

    @classmethod
    def parse(cls, text: str) -> AllowedPrivateHosts:
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

    def allows_name(self, host: str, port: int) -> bool:
        spelled = host.lower().rstrip(".")
        return spelled in self.names or f"{spelled}:{port}" in self.names

    def allows_address(self, address: Address, port: int) -> bool:
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


_EXPIRED = 10
_OTHER_NAMES = (62, 64)
"""OpenSSL error numbers (X509_V_ERR_…) for a wrong host name or address."""


def trust_store(url: str) -> ssl.SSLContext | bool:
    """What httpx verifies servers with. Without TLS an empty one, which trusts no server: the real one takes 0.1 s."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if url.startswith("http://") else True


@functools.cache
def system_authorities() -> ssl.SSLContext:
    """What clients that read nothing from the environment verify servers with. They share it, unchanged: reading it
    takes 0.1 s."""
    import httpx2  # noqa: PLC0415  not everything that needs this module sends requests

    return httpx2.create_ssl_context(trust_env=False)


def make_client_context(authority: str = "") -> ssl.SSLContext:
    """Makes a TLS client context. `authority` is a PEM file of a private certificate authority."""
    return add_authority(ssl.create_default_context(), authority)


def add_authority(context: ssl.SSLContext, authority: str) -> ssl.SSLContext:
    """Adds a private authority to those the context trusts."""
    if not authority:
        return context
    try:
        context.load_verify_locations(cafile=str(Path(authority).expanduser()))
    except (OSError, ValueError) as error:  # an ssl.SSLError is an OSError
        raise ConfigMistake(
            "MAIL_CA_FILE is no file with a certificate in it.",
            hint="Give the path of a PEM file: annabelle config set MAIL_CA_FILE PATH",
            field="MAIL_CA_FILE",
        ) from error
    return context


def find_certificate_error(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """Finds the certificate error that libraries wrapped into their own errors."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error


def describe_certificate_error(server: str, error: ssl.SSLCertVerificationError) -> tuple[str, str]:
    """Returns what is wrong with a server's certificate, and a hint."""
    if error.verify_code in _OTHER_NAMES:
        return f"{server} shows a certificate for another name.", "Check the name of the server."
    if error.verify_code == _EXPIRED:
        return f"{server} shows a certificate that has expired.", "Its operator has to renew it."
    return (
        f"{server} shows a certificate that this machine does not trust.",
        "If it is a server of your own, name the certificate of its authority: annabelle config set MAIL_CA_FILE PATH",
    )
