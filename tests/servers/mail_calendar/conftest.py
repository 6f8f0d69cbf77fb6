"""The mail server's tools on a Google that keeps state, and on a real Dovecot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from annabelle.core.connections import write_connection
from annabelle.core.home import Home
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.mail_calendar.config import GoogleApiUrls, MailCalendarConfig
from annabelle.servers.mail_calendar.google_errors import GoogleRetry
from annabelle.servers.mail_calendar.server import build
from servers.mail_calendar.boxes import Box, GoogleBox, ImapBox
from support.google_double.mail import MailPart
from support.google_double.server import GoogleDouble
from support.mail_servers import MailServers, start_mail_servers


@pytest.fixture(scope="session")
def mail_servers() -> Iterator[MailServers]:
    """Dovecot and an SMTP server, started once."""
    with start_mail_servers() as servers:
        yield servers


@pytest.fixture
def mail_config(home: Home, tmp_path: Path) -> MailCalendarConfig:
    """A server that is not connected to anything, and does not wait long."""
    files = FilesConfig(
        home=home,
        user_home=tmp_path,
        workspace=home.workspace,
        grants_file=home.config / "filer-grants.json",
        audit_file=home.logs / "filer-audit.jsonl",
    )
    return MailCalendarConfig(
        files=files, google_retry=GoogleRetry(tries=4, first=0.01), attachment_max_bytes=1_000_000
    )


@pytest.fixture(scope="session")
def google_double() -> Iterator[tuple[GoogleDouble, MailPart]]:
    """A Google with a mailbox, started once and emptied for each test."""
    mail = MailPart()
    with GoogleDouble(mail) as double:
        yield double, mail


@pytest.fixture
async def google_box(
    mail_config: MailCalendarConfig, google_double: tuple[GoogleDouble, MailPart]
) -> AsyncIterator[GoogleBox]:
    double, mail = google_double
    mail.clear()
    double.app.clear()
    config = MailCalendarConfig(
        files=mail_config.files,
        google=GoogleApiUrls.from_base(double.url),
        google_retry=mail_config.google_retry,
        attachment_max_bytes=mail_config.attachment_max_bytes,
    )
    write_connection(config.home, "google", double.account(mail.address))
    server = build(config)
    yield GoogleBox(
        "google",
        server,
        config,
        mail.address,
        deliver=lambda data: void(mail.deliver(data)),
        sent=lambda: list(mail.sent),
        app=double.app,
        mail=mail,
    )
    await server.close()


@pytest.fixture
async def imap_box(mail_config: MailCalendarConfig, mail_servers: MailServers) -> AsyncIterator[ImapBox]:
    address = mail_servers.new_address()
    write_connection(mail_config.home, "mail", mail_servers.account(address))
    server = build(mail_config)

    def sent() -> list[bytes]:
        return [one.content for one in mail_servers.sent_by(address) if isinstance(one.content, bytes)]

    yield ImapBox(
        "imap",
        server,
        mail_config,
        address,
        deliver=lambda data: mail_servers.deliver(address, data),
        sent=sent,
        servers=mail_servers,
    )
    mail_servers.hang_up.clear()
    await server.close()


@pytest.fixture(params=["google", "imap"])
def box(request: pytest.FixtureRequest, mail_servers: MailServers) -> Box:
    """Every test that takes this runs on both kinds of mailbox. The servers are named, so that they run before what
    looks for processes that a test has left."""
    return request.getfixturevalue(f"{request.param}_box")


def void(value: object) -> None:
    """Leave a value alone."""
