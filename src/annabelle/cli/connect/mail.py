"""`annabelle connect mail`: finds the servers of a mailbox, checks them and saves the account."""

from __future__ import annotations

import ipaddress
import re
import sys
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import typer
from pydantic import SecretStr, ValidationError

from annabelle.cli.connect.accounts import notify_hub, read_state
from annabelle.cli.connect.mail_check import check_caldav, check_imap, check_smtp
from annabelle.cli.options import Json
from annabelle.cli.output import clean, print_json, print_line, print_paragraph
from annabelle.cli.spinner import Spinner
from annabelle.cli.terminal_input import MAX_CHARS, ask_line, check_line
from annabelle.core.connections import MailAccount, MailServerAddress, write_connection
from annabelle.core.errors import AnnabelleError, CallerMistake
from annabelle.core.home import Home
from annabelle.core.settings import load_settings

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
        raise CallerMistake(f"--{kind} is not a host and port.", hint=f"Write it as {kind}.example.org:993.")
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
        raise CallerMistake("--caldav is not an address.", hint="Write it as https://dav.example.org/.")
    if parts.scheme == "http" and not is_this_machine(parts.hostname):
        raise CallerMistake("--caldav would send the password where others can read it.", hint="Use https.")
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
    advice = "The names of the servers were guessed; give them with --imap and --smtp if they are others."
    return PROVIDERS.get(name) or replace(_make_provider(f"imap.{name}", f"smtp.{name}", advice=advice), known=False)


_ADDRESS = re.compile(r"[^@\s\"<>,;]{1,64}@[^@\s\"<>,;/:]{1,253}")


def connect_mail(
    address: Annotated[str | None, typer.Argument(help="The mail address; asked for when left out.")] = None,
    imap: Annotated[str | None, typer.Option("--imap", help="Server to read from, as host:port.")] = None,
    smtp: Annotated[str | None, typer.Option("--smtp", help="Server to send with, as host:port.")] = None,
    security: Annotated[
        Security | None, typer.Option("--security", help="How both are kept private; by default what the ports mean.")
    ] = None,
    caldav: Annotated[str | None, typer.Option("--caldav", help="Address of the calendar.")] = None,
    username: Annotated[str | None, typer.Option("--username", help="By default the mail address.")] = None,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from standard input.")
    ] = False,
    json: Json = False,
) -> None:
    """Connect a mailbox: IMAP to read, SMTP to send, CalDAV for the calendar. Each is tried before it is kept."""
    home = Home.from_environment()
    mailbox = address.strip() if address is not None else ask_line("Mail address", "annabelle connect mail ADDRESS")
    if not _ADDRESS.fullmatch(check_line("The mail address", mailbox)):
        raise CallerMistake("This is not a mail address.", hint="Write it as name@example.org.")
    provider = find_provider(mailbox.rpartition("@")[2])
    account = MailAccount(
        address=mailbox,
        username=check_line("The user name", username or mailbox),
        imap=_choose_server("imap", imap, security, provider.imap),
        smtp=_choose_server("smtp", smtp, security, provider.smtp),
        caldav_url=parse_calendar_url(caldav) if caldav is not None else provider.caldav,
        password=_read_password(stdin=password_stdin),  # last, so that other errors show before the person types it
    )
    guessed = not provider.known and (imap is None or smtp is None)
    advice = provider.advice if provider.known or guessed else None
    authority = load_settings(home).mail_ca_file.strip()
    account, without_calendar = _check_account(account, authority, advice, calendar_wanted=caldav is not None)
    write_connection(home.prepare(), "mail", account)
    told = notify_hub(home, "mail")
    if json:
        print_json({"kind": "mail", "account": mailbox, "calendar": account.caldav_url is not None, "hub_told": told})
        return
    print_line(f"Connected to the mailbox {clean(mailbox)}.")
    if read_state(home, "google").state == "connected":
        print_paragraph("Google is connected too and comes first; to use this mailbox: annabelle connect remove google")
    if without_calendar is not None:
        print_paragraph(f"Without a calendar: {without_calendar}")


def _choose_server(
    kind: MailServerKind, written: str | None, security: Security | None, usual: MailServerAddress
) -> MailServerAddress:
    if written is not None:
        return parse_mail_server(kind, written, security)
    return require_encryption(
        usual if security is None else usual.model_copy(update={"security": security}), f"--{kind}"
    )


def _read_password(*, stdin: bool) -> SecretStr:
    if not stdin:
        return SecretStr(ask_line("Password", "--password-stdin", secret=True))
    password = sys.stdin.readline(MAX_CHARS + 2).rstrip("\r\n")
    if not password:
        raise CallerMistake("Standard input had no password.")
    return SecretStr(check_line("The password", password))


def _check_account(
    account: MailAccount, authority: str, advice: str | None, *, calendar_wanted: bool
) -> tuple[MailAccount, str | None]:
    """Check the servers. Returns the account, and why a guessed calendar was dropped."""
    try:
        with Spinner("Signing in to read mail"):
            check_imap(account, authority)
        with Spinner("Signing in to send mail"):
            check_smtp(account, authority)
    except AnnabelleError as error:
        error.hint = " ".join(filter(None, (error.hint, advice)))
        raise
    if account.caldav_url is None:
        return account, None
    try:
        with Spinner("Opening the calendar"):
            check_caldav(account, authority)
    except AnnabelleError as error:
        if calendar_wanted:
            raise
        return account.model_copy(update={"caldav_url": None}), error.message
    return account, None
