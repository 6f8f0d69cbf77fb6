"""`annabelle connect mail`: a mailbox anywhere, kept only after its servers have let us in."""

from __future__ import annotations

import re
import sys
from typing import Annotated

import typer
from pydantic import SecretStr

from annabelle.cli.connect.asking import MAX_CHARS, ask, checked
from annabelle.cli.connect.listing import look
from annabelle.cli.connect.mail_check import check_caldav, check_imap, check_smtp
from annabelle.cli.connect.mail_doors import DoorKind, Security, calendar_of, door_of, private
from annabelle.cli.connect.mail_providers import provider_of
from annabelle.cli.connect.telling import tell_hub
from annabelle.cli.options import Json
from annabelle.cli.output import print_json, print_line, print_paragraph
from annabelle.cli.patience import Patience
from annabelle.cli.screen import clean
from annabelle.core.connections import Door, MailAccount, write_connection
from annabelle.core.errors import AnnabelleError, CallerMistake
from annabelle.core.home import Home
from annabelle.core.settings import load_settings

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
    mailbox = address.strip() if address is not None else ask("Mail address", "annabelle connect mail ADDRESS")
    if not _ADDRESS.fullmatch(checked("The mail address", mailbox)):
        raise CallerMistake("This is not a mail address.", hint="Write it as name@example.org.")
    provider = provider_of(mailbox.rpartition("@")[2])
    account = MailAccount(
        address=mailbox,
        username=checked("The user name", username or mailbox),
        imap=_door("imap", imap, security, provider.imap),
        smtp=_door("smtp", smtp, security, provider.smtp),
        caldav_url=calendar_of(caldav) if caldav is not None else provider.caldav,
        password=_password(stdin=password_stdin),  # last: what is wrong before it is not worth typing it for
    )
    guessed = not provider.known and (imap is None or smtp is None)
    advice = provider.advice if provider.known or guessed else None
    authority = load_settings(home).mail_ca_file.strip()
    account, without_calendar = _tried(account, authority, advice, calendar_wanted=caldav is not None)
    write_connection(home.prepare(), "mail", account)
    told = tell_hub(home, "mail")
    if json:
        print_json({"kind": "mail", "account": mailbox, "calendar": account.caldav_url is not None, "hub_told": told})
        return
    print_line(f"Connected to the mailbox {clean(mailbox)}.")
    if look(home, "google").state == "connected":
        print_paragraph("Google is connected too and comes first; to use this mailbox: annabelle connect remove google")
    if without_calendar is not None:
        print_paragraph(f"Without a calendar: {without_calendar}")


def _door(kind: DoorKind, written: str | None, security: Security | None, usual: Door) -> Door:
    if written is not None:
        return door_of(kind, written, security)
    return private(usual if security is None else usual.model_copy(update={"security": security}), f"--{kind}")


def _password(*, stdin: bool) -> SecretStr:
    if not stdin:
        return SecretStr(ask("Password", "--password-stdin", secret=True))
    password = sys.stdin.readline(MAX_CHARS + 2).rstrip("\r\n")
    if not password:
        raise CallerMistake("Standard input had no password.")
    return SecretStr(checked("The password", password))


def _tried(
    account: MailAccount, authority: str, advice: str | None, *, calendar_wanted: bool
) -> tuple[MailAccount, str | None]:
    """The account once its servers have let us in; and why it has no calendar, where one was only guessed."""
    try:
        with Patience("Signing in to read mail"):
            check_imap(account, authority)
        with Patience("Signing in to send mail"):
            check_smtp(account, authority)
    except AnnabelleError as error:
        error.hint = " ".join(filter(None, (error.hint, advice)))
        raise
    if account.caldav_url is None:
        return account, None
    try:
        with Patience("Opening the calendar"):
            check_caldav(account, authority)
    except AnnabelleError as error:
        if calendar_wanted:
            raise
        return account.model_copy(update={"caldav_url": None}), error.message
    return account, None
