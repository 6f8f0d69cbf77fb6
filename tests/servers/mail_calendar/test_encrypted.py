"""Mail and calendar over TLS: with a certificate that counts, and with one that does not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from annabelle.core.connections import MailAccount, write_connection
from annabelle.core.errors import ConfigMistake, Unavailable
from annabelle.servers.kit import ToolServer
from annabelle.servers.mail_calendar.config import MailCalendarConfig, ServerAccess
from annabelle.servers.mail_calendar.mail import imap_outbox
from annabelle.servers.mail_calendar.server import build
from servers.mail_calendar.mails import mail
from servers.searcher.certificates import Authority
from support.caldav_server import USER, CalDavServer, caldav_server
from support.mail_servers import MailServers, start_mail_servers

pytestmark = pytest.mark.req("SRV-MAI")


@dataclass(frozen=True)
class Encrypted:
    """Real servers with a certificate for 127.0.0.1, and the authority that signed it."""

    mail: MailServers
    calendar: CalDavServer
    authority: Path

    def account(self, security: str, host: str = "127.0.0.1") -> MailAccount:
        account = self.mail.encrypted_account(self.mail.new_address(), security, host)
        own = self.calendar.account(path=f"{USER}/main/")
        names = ("caldav_url", "caldav_username", "caldav_password")
        return account.model_copy(update={name: getattr(own, name) for name in names})


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Encrypted]:
    folder = tmp_path_factory.mktemp("tls")
    authority = Authority.make(folder)
    context = authority.for_servers("127.0.0.1")
    with (
        start_mail_servers(folder / "127.0.0.1.pem") as mail_servers,
        caldav_server(tmp_path_factory.mktemp("caldav-tls"), context) as calendar,
    ):
        calendar.make_calendar("main", "Ada")
        yield Encrypted(mail_servers, calendar, authority.file)


@asynccontextmanager
async def serving(config: MailCalendarConfig, account: MailAccount, authority: str) -> AsyncIterator[ToolServer]:
    write_connection(config.home, "mail", account)
    server = build(replace(config, server_access=ServerAccess(authority=authority)))
    try:
        yield server
    finally:
        await server.close()


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_with_the_authority_named_mail_is_read_and_sent_and_the_calendar_opens(
    encrypted: Encrypted, mail_config: MailCalendarConfig, security: str
) -> None:
    account = encrypted.account(security)
    encrypted.mail.deliver(account.address, mail("Over TLS"))
    async with serving(mail_config, account, str(encrypted.authority)) as server:
        found = await server.tools["list_emails"].call({"query": "in:inbox"})
        await server.tools["send_email"].call({"to": "bob@example.org", "subject": "Hi", "body": "Hello"})
        await server.tools["quick_add_event"].call({"text": "Lunch tomorrow at 12"})
    assert [one.subject for one in found.emails] == ["Over TLS"]  # type: ignore[attr-defined]
    assert [one.rcpt_tos for one in encrypted.mail.sent_by(account.address)] == [["bob@example.org"]]
    assert any("Lunch" in text for text in encrypted.calendar.stored("main").values())


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_a_certificate_nobody_vouches_for_is_refused_everywhere(
    encrypted: Encrypted, mail_config: MailCalendarConfig, security: str
) -> None:
    account = encrypted.account(security)
    async with serving(mail_config, account, "") as server:
        for tool in ("list_emails", "list_events"):
            with pytest.raises(Unavailable, match="shows a certificate that this machine does not trust") as refused:
                await server.tools[tool].call({})
            assert "MAIL_CA_FILE" in (refused.value.hint or "")
    with pytest.raises(Unavailable, match=f"outgoing mail 127.0.0.1:{account.smtp.port} shows a certificate"):
        await imap_outbox.deliver_mail(
            account, ["bob@example.org"], b"Subject: x", imap_outbox.SmtpReceipt(), ServerAccess()
        )
    assert encrypted.mail.sent_by(account.address) == []


async def test_a_certificate_for_another_name_is_refused_although_the_authority_counts(
    encrypted: Encrypted, mail_config: MailCalendarConfig
) -> None:
    account = encrypted.account("tls", host="localhost")
    async with serving(mail_config, account, str(encrypted.authority)) as server:
        with pytest.raises(Unavailable, match=r"localhost:.* shows a certificate for another name"):
            await server.tools["list_emails"].call({})


async def test_an_authority_that_is_no_certificate_is_the_operators_to_mend(
    encrypted: Encrypted, mail_config: MailCalendarConfig, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    async with serving(mail_config, encrypted.account("tls"), str(wrong)) as server:
        for tool in ("list_emails", "list_events"):
            with pytest.raises(ConfigMistake, match="MAIL_CA_FILE is no file with a certificate"):
                await server.tools[tool].call({})
