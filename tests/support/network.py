"""Holds a Python process to loopback where a network namespace is not to be had.

It sees what goes through Python's own sockets; the namespace of `scripts/isolated.py` sees everything.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Callable

LOCAL_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost", "", "0.0.0.0", "::"})


def is_local(address: object) -> bool:
    """Whether a socket address stays on this machine; a unix socket's path does."""
    return not isinstance(address, tuple) or is_local_host(address[0])


def is_local_host(host: object) -> bool:
    text = _text(host)
    address = _address(text)
    return text in LOCAL_NAMES or (address is not None and address.is_loopback)


def _text(host: object) -> str:
    return host.decode("ascii", "replace") if isinstance(host, bytes) else str(host or "")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.split("%")[0])
    except ValueError:
        return None


def guard(replace: Callable[[object, str, object], None] = setattr) -> None:
    """Let this process's sockets answer as on a machine without any network but its own.

    `replace` is `setattr`, or a test's way to do it and undo it.
    """
    resolve, connect = socket.getaddrinfo, socket.socket.connect
    connect_ex, sendto = socket.socket.connect_ex, socket.socket.sendto

    def check(address: object) -> None:
        if not is_local(address):
            raise OSError(errno.ENETUNREACH, f"Network is unreachable (tests keep to loopback): {address}")

    def guarded_resolve(host, *arguments, **options):
        # A number needs no looking up; connecting to it is another matter.
        if not is_local_host(host) and _address(_text(host)) is None:
            raise socket.gaierror(socket.EAI_AGAIN, f"Name not resolved (tests keep to loopback): {host}")
        return resolve(host, *arguments, **options)

    def guarded_connect(self, address):
        check(address)
        return connect(self, address)

    def guarded_connect_ex(self, address):
        return connect_ex(self, address) if is_local(address) else errno.ENETUNREACH

    def guarded_sendto(self, data, *flags_and_address):
        check(flags_and_address[-1])
        return sendto(self, data, *flags_and_address)

    replace(socket, "getaddrinfo", guarded_resolve)
    replace(socket.socket, "connect", guarded_connect)
    replace(socket.socket, "connect_ex", guarded_connect_ex)
    replace(socket.socket, "sendto", guarded_sendto)


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
