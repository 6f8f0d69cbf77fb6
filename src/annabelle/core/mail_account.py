"""Mailboxes: finds the servers of an address, tries them, and keeps the account if they let us in."""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import SecretStr, ValidationError

from annabelle.core.connections import MailAccount, MailServerAddress, write_connection
from annabelle.core.errors import AnnabelleError, CallerMistake
from annabelle.core.home import Home
from annabelle.core.mail_check import check_caldav, check_imap, check_smtp

Security = Literal["tls", "starttls", "none"]
MailServerKind = Literal["imap", "smtp"]
_TLS_PORTS = {993, 465}
_DEFAULT_PORTS = {("imap", "tls"): 993, ("smtp", "tls"): 465, ("smtp", "starttls"): 587}
_IMAP_PLAIN, _SMTP_PLAIN = 143, 25
_WRITTEN = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:\[\]/@]+))(?::(?P<port>[0-9]{1,5}))?")


def parse_mail_server(kind: MailServerKind, written: str, security: Security | None) -> MailServerAddress:
    """Parse host and port; missing parts follow from the port or the defaults."""
    found = _WRITTEN.fullmatch(written.strip())
    if found is None:
        raise CallerMistake(f"The {kind} server is not a host and port.", hint=f"Write it as {kind}.example.org:993.")
    host = found["six"] or found["host"]
    port = int(found["port"]) if found["port"] else None
    kept = security or ("starttls" if port is not None and port not in _TLS_PORTS else "tls")
    plain = _IMAP_PLAIN if kind == "imap" else _SMTP_PLAIN
    try:
        door = MailServerAddress(host=host, port=port or _DEFAULT_PORTS.get((kind, kept), plain), security=kept)
    except ValidationError as error:
        raise CallerMistake(f"The port of --{kind} is not one: {port}.") from error
    return require_encryption(door, f"--{kind}")


def require_encryption(door: MailServerAddress, what: str) -> MailServerAddress:
    """Refuse a connection that would send the password unencrypted to another machine."""
    if door.security == "none" and not is_this_machine(door.host):
        raise CallerMistake(
            f"{what} would send the password where others can read it.",
            hint="Security none is for servers on this machine only; use tls or starttls.",
        )
    return door


def parse_calendar_url(url: str) -> str:
    """Parse a calendar URL; http is allowed on this machine only."""
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise CallerMistake("The CalDAV address is not a web address.", hint="Write it as https://dav.example.org/.")
    if parts.scheme == "http" and not is_this_machine(parts.hostname):
        raise CallerMistake("CalDAV would send the password where others can read it.", hint="Use https.")
    return parts.geturl()


def is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


@dataclass(frozen=True, slots=True)
class MailProvider:
    """The servers of one provider. `advice` is shown if it refuses a sign-in."""

    imap: MailServerAddress
    smtp: MailServerAddress
    caldav: str | None = None
    advice: str | None = None
    known: bool = True


def _make_provider(
    imap: str, smtp: str, *, starttls: bool = False, caldav: str | None = None, advice: str | None = None
) -> MailProvider:
    reading = MailServerAddress(host=imap, port=993, security="tls")
    port, security = (587, "starttls") if starttls else (465, "tls")
    return MailProvider(reading, MailServerAddress(host=smtp, port=port, security=security), caldav, advice)


def _load_providers() -> dict[str, MailProvider]:
    file = tomllib.loads(Path(__file__).with_name("mail_providers.toml").read_text(encoding="utf-8"))
    found: dict[str, MailProvider] = {}
    for entry in file["provider"]:
        domains, advice = entry.pop("domains"), entry.pop("advice", None)
        found |= dict.fromkeys(domains, _make_provider(**entry, advice=file["advice"].get(advice, advice)))
    return found


PROVIDERS = _load_providers()


def find_provider(domain: str) -> MailProvider:
    """The provider of a domain, or a guess with the usual host names."""
    name = domain.lower().rstrip(".")
    advice = "The names of the servers were guessed; give those for IMAP and SMTP if they are others."
    return PROVIDERS.get(name) or replace(_make_provider(f"imap.{name}", f"smtp.{name}", advice=advice), known=False)


_ADDRESS = re.compile(r"[^@\s\"<>,;]{1,64}@[^@\s\"<>,;/:]{1,253}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MailboxInput:
    """What a person says of a mailbox. What is left out follows from the address."""

    address: str
    username: str | None = None
    imap: str | None = None
    smtp: str | None = None
    security: Security | None = None
    caldav: str | None = None


@dataclass(frozen=True, slots=True)
class MailboxOutcome:
    account: MailAccount
    without_calendar: str | None
    """Why it has no calendar although its provider has one."""


Step = Callable[[str], AbstractContextManager[object]]
"""Shows what is being done."""


def connect_mailbox(
    home: Home,
    given: MailboxInput,
    read_password: Callable[[], SecretStr],
    *,
    authority: str,
    step: Step = nullcontext,
) -> MailboxOutcome:
    """Tries the servers and keeps the account. The password is asked for once everything else is fine."""
    if not _ADDRESS.fullmatch(given.address):
        raise CallerMistake("This is not a mail address.", hint="Write it as name@example.org.")
    provider = find_provider(given.address.rpartition("@")[2])
    account = MailAccount(
        address=given.address,
        username=given.username or given.address,
        imap=_choose_server("imap", given.imap, given.security, provider.imap),
        smtp=_choose_server("smtp", given.smtp, given.security, provider.smtp),
        caldav_url=parse_calendar_url(given.caldav) if given.caldav is not None else provider.caldav,
        password=read_password(),
    )
    guessed = not provider.known and (given.imap is None or given.smtp is None)
    try:
        with step("Signing in to read mail"):
            check_imap(account, authority)
        with step("Signing in to send mail"):
            check_smtp(account, authority)
    except AnnabelleError as error:
        error.hint = " ".join(filter(None, (error.hint, provider.advice if provider.known or guessed else None)))
        raise
    connected = _try_calendar(account, authority, step, wanted=given.caldav is not None)
    write_connection(home.prepare(), "mail", connected.account)
    return connected


def _try_calendar(account: MailAccount, authority: str, step: Step, *, wanted: bool) -> MailboxOutcome:
    """A calendar that nobody asked for is left out if it cannot be opened."""
    if account.caldav_url is None:
        return MailboxOutcome(account, None)
    try:
        with step("Opening the calendar"):
            check_caldav(account, authority)
    except AnnabelleError as error:
        if wanted:
            raise
        return MailboxOutcome(account.model_copy(update={"caldav_url": None}), error.message)
    return MailboxOutcome(account, None)


def _choose_server(
    kind: MailServerKind, written: str | None, security: Security | None, usual: MailServerAddress
) -> MailServerAddress:
    if written is not None:
        return parse_mail_server(kind, written, security)
    return require_encryption(
        usual if security is None else usual.model_copy(update={"security": security}), f"--{kind}"
    )
