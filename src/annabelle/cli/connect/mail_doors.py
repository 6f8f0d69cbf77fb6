"""Reads what a person writes for a mail server: a host, its port, and how the line is kept private."""

from __future__ import annotations

import ipaddress
import re
from typing import Literal
from urllib.parse import urlsplit

from pydantic import ValidationError

from annabelle.core.connections import Door
from annabelle.core.errors import CallerMistake

Security = Literal["tls", "starttls", "none"]
DoorKind = Literal["imap", "smtp"]
_TLS_PORTS = {993, 465}
_DEFAULT_PORTS = {("imap", "tls"): 993, ("smtp", "tls"): 465, ("smtp", "starttls"): 587}
_IMAP_PLAIN, _SMTP_PLAIN = 143, 25
_WRITTEN = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:\[\]/@]+))(?::(?P<port>[0-9]{1,5}))?")


def door_of(kind: DoorKind, written: str, security: Security | None) -> Door:
    """The door a person named; what they left out follows from the port or the usual way."""
    found = _WRITTEN.fullmatch(written.strip())
    if found is None:
        raise CallerMistake(f"--{kind} is not a host and port.", hint=f"Write it as {kind}.example.org:993.")
    host = found["six"] or found["host"]
    port = int(found["port"]) if found["port"] else None
    kept = security or ("starttls" if port is not None and port not in _TLS_PORTS else "tls")
    plain = _IMAP_PLAIN if kind == "imap" else _SMTP_PLAIN
    try:
        door = Door(host=host, port=port or _DEFAULT_PORTS.get((kind, kept), plain), security=kept)
    except ValidationError as error:
        raise CallerMistake(f"The port of --{kind} is not one: {port}.") from error
    return private(door, f"--{kind}")


def private(door: Door, what: str) -> Door:
    """Refuses a line on which a password could be read by others."""
    if door.security == "none" and not is_this_machine(door.host):
        raise CallerMistake(
            f"{what} would send the password where others can read it.",
            hint="Security none is for servers on this machine only; use tls or starttls.",
        )
    return door


def calendar_of(url: str) -> str:
    """The address of a calendar; one that is not encrypted only on this machine."""
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise CallerMistake("--caldav is not an address.", hint="Write it as https://dav.example.org/.")
    if parts.scheme == "http" and not is_this_machine(parts.hostname):
        raise CallerMistake("--caldav would send the password where others can read it.", hint="Use https.")
    return parts.geturl()


def is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"
