"""`annabelle connect mail`: connects a mailbox."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from pydantic import SecretStr

from annabelle.cli.connect.accounts import notify_hub
from annabelle.cli.options import Json
from annabelle.cli.output import clean, print_json, print_line, print_paragraph
from annabelle.cli.spinner import Spinner
from annabelle.cli.terminal_input import MAX_CHARS, ask_line, check_line
from annabelle.core.connections import read_state
from annabelle.core.errors import CallerMistake
from annabelle.core.home import Home
from annabelle.core.mail_account import MailboxInput, Security, connect_mailbox
from annabelle.core.settings import load_settings


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
    given = MailboxInput(
        address=check_line("The mail address", mailbox),
        username=check_line("The user name", username or mailbox),
        imap=imap,
        smtp=smtp,
        security=security,
        caldav=caldav,
    )
    authority = load_settings(home).mail_ca_file.strip()
    made = connect_mailbox(home, given, lambda: _read_password(stdin=password_stdin), authority=authority, step=Spinner)
    told = notify_hub(home, "mail")
    if json:
        calendar = made.account.caldav_url is not None
        print_json({"kind": "mail", "account": mailbox, "calendar": calendar, "hub_told": told})
        return
    print_line(f"Connected to the mailbox {clean(mailbox)}.")
    if read_state(home, "google").state == "connected":
        print_paragraph("Google is connected too and comes first; to use this mailbox: annabelle connect remove google")
    if made.without_calendar is not None:
        print_paragraph(f"Without a calendar: {made.without_calendar}")


def _read_password(*, stdin: bool) -> SecretStr:
    if not stdin:
        return SecretStr(ask_line("Password", "--password-stdin", secret=True))
    password = sys.stdin.readline(MAX_CHARS + 2).rstrip("\r\n")
    if not password:
        raise CallerMistake("Standard input had no password.")
    return SecretStr(check_line("The password", password))
