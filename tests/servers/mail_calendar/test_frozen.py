"""Servers that take a connection and say nothing, or nothing more."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from annabelle.core.connections import MailServerAddress, write_connection
from annabelle.core.errors import Unavailable
from annabelle.servers.mail_calendar.config import MailCalendarConfig, ServerAccess
from annabelle.servers.mail_calendar.server import build
from support.mail_servers import MailServers
from support.timing import seconds

pytestmark = pytest.mark.req("SRV-MAI", "SRV-ALL")

SECONDS = 0.7


class Frozen:
    """Greets, if it has a greeting, and is silent from then on."""

    def __init__(self, greeting: bytes) -> None:
        self.greeting = greeting
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.taken: list[socket.socket] = []
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    def _take(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self.taken.append(connection)
                connection.sendall(self.greeting)

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(seconds(10))
        for connection in self.taken:
            connection.close()


@pytest.fixture
def frozen(request: pytest.FixtureRequest) -> Iterator[Frozen]:
    server = Frozen(request.param)
    yield server
    server.close()


@pytest.mark.parametrize(
    ("frozen", "security"),
    [(b"", "tls"), (b"", "starttls"), (b"", "none"), (b"* OK ready\r\n", "starttls"), (b"* OK ready\r\n", "none")],
    indirect=["frozen"],
)
async def test_a_server_for_reading_that_does_not_let_us_in_is_asked_once_and_named(
    mail_config: MailCalendarConfig, mail_servers: MailServers, frozen: Frozen, security: str
) -> None:
    account = mail_servers.account(mail_servers.new_address())
    door = MailServerAddress(host="127.0.0.1", port=frozen.port, security=security)
    write_connection(mail_config.home, "mail", account.model_copy(update={"imap": door}))
    server = build(replace(mail_config, server_access=ServerAccess(SECONDS)))
    told = f"The mail server 127.0.0.1:{frozen.port} did not answer within {SECONDS:g} seconds"
    with pytest.raises(Unavailable, match=told) as given_up:
        await server.tools["list_emails"].call({})
    await server.close()
    assert "firewall" in (given_up.value.hint or "")
    assert len(frozen.taken) <= 1, "a server that is silent is not asked again"


@pytest.mark.parametrize("frozen", [b"", b"220 ready\r\n"], ids=["silent", "greeting"], indirect=True)
async def test_a_server_for_sending_that_is_silent_is_given_up_and_nothing_was_sent(
    mail_config: MailCalendarConfig, mail_servers: MailServers, frozen: Frozen
) -> None:
    address = mail_servers.new_address()
    account = mail_servers.account(address)
    door = account.smtp.model_copy(update={"port": frozen.port})
    write_connection(mail_config.home, "mail", account.model_copy(update={"smtp": door}))
    server = build(
        replace(mail_config, server_access=ServerAccess(5))
    )  # the other server, which works, needs some time too
    with pytest.raises(Unavailable, match=f"mail 127.0.0.1:{frozen.port} did not answer .*; nothing was sent"):
        await server.tools["send_email"].call({"to": "bob@example.org", "subject": "Hi", "body": "Hello"})
    await server.close()
    assert len(frozen.taken) <= 1
    assert mail_servers.sent_by(address) == []


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("frozen", [b""], ids=["silent"], indirect=True)
async def test_a_calendar_server_that_is_silent_is_given_up_and_named(
    mail_config: MailCalendarConfig, mail_servers: MailServers, frozen: Frozen, scheme: str
) -> None:
    account = mail_servers.account(mail_servers.new_address())
    url = f"{scheme}://127.0.0.1:{frozen.port}/"
    write_connection(mail_config.home, "mail", account.model_copy(update={"caldav_url": url}))
    server = build(replace(mail_config, server_access=ServerAccess(SECONDS)))
    with pytest.raises(Unavailable, match=f"The calendar server 127.0.0.1:{frozen.port} did not answer within"):
        await server.tools["list_events"].call({})
    await server.close()
    assert len(frozen.taken) <= 1
