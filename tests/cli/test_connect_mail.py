"""`annabelle connect mail`: kept only when reading, sending and the calendar have let us in."""

from __future__ import annotations

import socketserver
import ssl
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import SecretStr

from annabelle.core.connections import GoogleAccount, MailAccount, connection_file, read_connection, write_connection
from annabelle.core.errors import CallerMistake
from annabelle.core.home import Home
from annabelle.core.mail_account import PROVIDERS, find_provider, parse_mail_server
from annabelle.core.mail_check import check_caldav
from cli.sign_ins import CalendarHandler, ImapHandler, Mailbox, SmtpServer, serving
from cli.terminal import Terminal
from cli.typed import Keyboard, Typed
from support.caldav_server import caldav_server
from support.mail_servers import start_mail_servers

pytestmark = pytest.mark.req("SRV-MAI")
ADDRESS, PASSWORD = "ada@example.org", "pässwörd nobody may see"


@dataclass
class House:
    """The servers of one mailbox, and where they listen."""

    box: Mailbox
    smtp: SmtpServer
    imap_port: int
    calendar_port: int

    @property
    def options(self) -> tuple[str, ...]:
        return ("--imap", f"127.0.0.1:{self.imap_port}", "--smtp", f"127.0.0.1:{self.smtp.listens_at}")

    @property
    def calendar(self) -> str:
        return f"http://127.0.0.1:{self.calendar_port}/dav/"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for this machine that nobody trusts unasked, with its key in the same file."""
    file = tmp_path_factory.mktemp("certificate") / "both.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(file), "-out", str(file)],
        check=True, capture_output=True,
    )  # fmt: skip
    return file


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    return context


class Plain(socketserver.ThreadingTCPServer):
    allow_reuse_address = True


@pytest.fixture
def house() -> Iterator[House]:
    box, smtp = Mailbox(ADDRESS, PASSWORD), SmtpServer(ADDRESS, PASSWORD)
    smtp.start()
    with serving(ImapHandler, box, Plain) as imap, serving(CalendarHandler, f"{ADDRESS}:{PASSWORD}") as calendar:
        yield House(box, smtp, imap, calendar)
    smtp.stop()


@pytest.fixture
def typed(home: Home, monkeypatch: pytest.MonkeyPatch) -> Keyboard:
    return Keyboard({}, monkeypatch)


def kept(home: Home) -> MailAccount | None:
    return read_connection(home, "mail", MailAccount)


def refused(done: Typed, home: Home, code: int, *words: str) -> None:
    assert (done.code, done.out) == (code, "")
    for word in words:
        assert word in done.err, done.err
    assert "Traceback" not in done.err
    assert PASSWORD not in done.err
    assert kept(home) is None
    assert PASSWORD not in "".join(file.read_text() for file in home.logs.glob("*"))


def test_a_mailbox_is_tried_everywhere_and_kept(typed: Keyboard, house: House, home: Home) -> None:
    done = typed(
        "connect", "mail", ADDRESS, *house.options, "--security", "none", "--caldav", house.calendar,
        "--password-stdin", stdin=f"{PASSWORD}\n",
    )  # fmt: skip
    assert (done.code, done.out, done.err) == (0, f"Connected to the mailbox {ADDRESS}.\n", "")
    assert (house.box.signed_in, house.smtp.signed_in) == (1, 1)
    account = kept(home)
    assert account is not None
    assert (account.username, account.password.get_secret_value()) == (ADDRESS, PASSWORD)
    assert (account.imap.port, account.imap.security, account.caldav_url) == (house.imap_port, "none", house.calendar)
    assert connection_file(home, "mail").stat().st_mode & 0o777 == 0o600
    listed = typed("connect").out
    assert ADDRESS in listed
    assert PASSWORD not in listed + repr(account)
    forgotten = typed("connect", "remove", "mail", "-y")
    assert "app password" in forgotten.out
    assert kept(home) is None


def test_real_servers_let_us_in_and_keep_others_out(typed: Keyboard, home: Home) -> None:
    with start_mail_servers() as servers:
        address = servers.new_address()
        options = (
            "connect", "mail", address, "--imap", f"127.0.0.1:{servers.imap_port}",
            "--smtp", f"127.0.0.1:{servers.smtp_port}", "--security", "none", "--password-stdin",
        )  # fmt: skip
        refused(typed(*options, stdin="wrong\n"), home, 2, "IMAP at", "refused the user name or the password")
        assert typed(*options, stdin=f"{servers.password}\n").out == f"Connected to the mailbox {address}.\n"
        assert kept(home) == servers.account(address)


def test_a_real_calendar_opens_for_its_owner_only(tmp_path: Path) -> None:
    with caldav_server(tmp_path) as server:
        check_caldav(server.account())
        with pytest.raises(CallerMistake, match="refused the user name or the password"):
            check_caldav(server.account("wrong"))


def test_everything_may_come_through_a_pipe_and_leave_as_json(typed: Keyboard, house: House, home: Home) -> None:
    house.box.plain = False
    house.box.username = house.smtp._known[0]
    house.box.password = "plain words"
    house.smtp._known = (ADDRESS, "plain words")
    done = typed(
        "connect", "mail", *house.options, "--security", "none", "--json", stdin=f"{ADDRESS}\nplain words\n"
    )  # fmt: skip
    assert done.json == {"kind": "mail", "account": ADDRESS, "calendar": False, "hub_told": False}
    assert house.box.signed_in == 1


def test_it_says_when_google_comes_first(typed: Keyboard, house: House, home: Home) -> None:
    google = GoogleAccount(email="a@b.c", client_id="x", client_secret=SecretStr("x"), refresh_token=SecretStr("x"))
    write_connection(home, "google", google)
    options = (*house.options, "--security", "none", "--password-stdin")
    assert "Google is connected too" in typed("connect", "mail", ADDRESS, *options, stdin=f"{PASSWORD}\n").out


def test_blanks_belong_to_a_password(typed: Keyboard, house: House, home: Home) -> None:
    house.box.password = " in blanks "
    house.smtp._known = (ADDRESS, " in blanks ")
    for how in ((), ("--password-stdin",)):
        done = typed("connect", "mail", ADDRESS, *house.options, "--security", "none", *how, stdin=" in blanks \n")
        assert (done.code, done.err) == (0, "")


def test_the_part_that_failed_is_named_and_nothing_is_kept(typed: Keyboard, house: House, home: Home) -> None:
    local = ("connect", "mail", ADDRESS, *house.options, "--security", "none", "--password-stdin")
    wrong = typed(*local, stdin="wrong\n")
    refused(
        wrong,
        home,
        2,
        f"IMAP at 127.0.0.1:{house.imap_port}",
        "refused the user name or the password",
        "Nothing was kept",
    )
    assert "guessed" not in wrong.err
    house.smtp._known = ("somebody", "else")
    refused(typed(*local, stdin=f"{PASSWORD}\n"), home, 2, "SMTP at", "refused the user name or the password")
    house.smtp._known = (ADDRESS, PASSWORD)
    calendar = typed(*local, "--caldav", house.calendar, "--username", ADDRESS, stdin=f"{PASSWORD}\n")
    assert calendar.code == 0
    connection_file(home, "mail").unlink()
    lost = typed(*local, "--caldav", "http://127.0.0.1:9/", stdin=f"{PASSWORD}\n")
    refused(lost, home, 1, "The calendar (CalDAV at 127.0.0.1) can not be reached")


@pytest.mark.parametrize(("status", "code", "words"), [(401, 2, "refused"), (404, 2, "answered 404")])
def test_a_calendar_that_does_not_open_is_said(
    typed: Keyboard, house: House, home: Home, status: int, code: int, words: str
) -> None:
    with serving(CalendarHandler, status) as port:
        done = typed(
            "connect", "mail", ADDRESS, *house.options, "--security", "none", "--password-stdin",
            "--caldav", f"http://127.0.0.1:{port}/", stdin=f"{PASSWORD}\n",
        )  # fmt: skip
    refused(done, home, code, "The calendar (CalDAV at 127.0.0.1)", words)


def test_a_calendar_that_was_only_guessed_does_not_keep_the_mail_away(
    typed: Keyboard, house: House, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = find_provider("example.org")
    monkeypatch.setitem(PROVIDERS, "example.org", type(provider)(provider.imap, provider.smtp, "http://127.0.0.1:9/"))
    options = ("connect", "mail", ADDRESS, *house.options, "--security", "none", "--password-stdin")
    done = typed(*options, stdin=f"{PASSWORD}\n")
    assert "Without a calendar: The calendar (CalDAV at 127.0.0.1) can not be reached." in done.out
    account = kept(home)
    assert account is not None
    assert account.caldav_url is None


def test_servers_that_are_not_there_or_are_something_else_are_said(typed: Keyboard, house: House, home: Home) -> None:
    word = {"stdin": f"{PASSWORD}\n"}
    gone = typed(
        "connect",
        "mail",
        ADDRESS,
        "--imap",
        "127.0.0.1:9",
        "--security",
        "none",
        "--password-stdin",
        "--smtp",
        "127.0.0.1:9",
        **word,
    )
    refused(gone, home, 1, "IMAP at 127.0.0.1:9", "can not be reached")
    house.box.greets = False
    other = typed("connect", "mail", ADDRESS, *house.options, "--security", "none", "--password-stdin", **word)
    refused(other, home, 1, "IMAP at", "can not be reached")
    house.box.greets = True
    plain = typed("connect", "mail", ADDRESS, *house.options, "--security", "tls", "--password-stdin", **word)
    refused(plain, home, 2, "IMAP at", "does not speak TLS there")
    bare = typed("connect", "mail", ADDRESS, *house.options, "--security", "starttls", "--password-stdin", **word)
    refused(bare, home, 2, "IMAP at", "does not offer what was asked of it: STARTTLS")
    guessed = typed("connect", "mail", "ada@nowhere.invalid", "--password-stdin", **word)
    refused(guessed, home, 1, "imap.nowhere.invalid:993", "guessed", "IMAP")


def test_tls_and_starttls_are_used_and_an_unknown_certificate_is_refused(
    typed: Keyboard, home: Home, tls: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Mailbox(ADDRESS, PASSWORD, tls=tls, offers_starttls=True)
    smtp = SmtpServer(ADDRESS, PASSWORD, tls)
    smtp.start()
    word = {"stdin": f"{PASSWORD}\n"}
    with serving(ImapHandler, box, Plain) as port:
        options = (
            "connect", "mail", ADDRESS, "--imap", f"127.0.0.1:{port}", "--smtp", f"127.0.0.1:{smtp.listens_at}",
            "--password-stdin",
        )  # fmt: skip
        refused(typed(*options, **word), home, 2, "IMAP at", "a certificate that this machine does not trust")
        assert box.signed_in == 0, "no password goes to a server that is not trusted"
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        done = typed(*options, **word)
        assert (done.code, done.err) == (0, "")
        account = kept(home)
        assert account is not None
        assert (account.imap.security, account.smtp.security) == ("starttls", "starttls")
        connection_file(home, "mail").unlink()
        box.offers_starttls = False
        # The mailbox speaks TLS from the first byte now; what sends mail does not.
        refused(typed(*options, "--security", "tls", **word), home, 2, "SMTP at", "does not speak TLS there")
        assert box.signed_in == 2
    smtp.stop()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("ada",), "not a mail address"),
        (("a@b@c",), "not a mail address"),
        (("ada@ex\x07ample.org",), "control character"),
        (("a" * 2000 + "@example.org",), "too long"),
        ((ADDRESS, "--imap", "mail.example.org:99999"), "The port of --imap"),
        ((ADDRESS, "--imap", "http://mail.example.org"), "imap server is not a host and port"),
        ((ADDRESS, "--smtp", "a b"), "smtp server is not a host and port"),
        ((ADDRESS, "--security", "none"), "where others can read it"),
        ((ADDRESS, "--imap", "10.0.0.5:143", "--security", "none"), "where others can read it"),
        ((ADDRESS, "--security", "maybe"), "maybe"),
        ((ADDRESS, "--caldav", "http://example.org/"), "where others can read it"),
        ((ADDRESS, "--caldav", "ftp://example.org/"), "CalDAV address is not a web address"),
        ((ADDRESS, "--caldav", "https://ada:secret@example.org/"), "CalDAV address is not a web address"),
        ((ADDRESS, "--username", "a\x00b"), "control character"),
        ((ADDRESS, "--password-stdin"), "Standard input had no password."),
        ((ADDRESS,), "Password is missing."),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_tried(
    typed: Keyboard, home: Home, options: tuple[str, ...], words: str
) -> None:
    refused(typed("connect", "mail", *options), home, 2, words)


def test_doors_are_read_as_people_write_them() -> None:
    assert parse_mail_server("imap", "[::1]:143", "none").host == "::1"
    assert parse_mail_server("imap", "mail.example.org", None).model_dump() == {
        "host": "mail.example.org", "port": 993, "security": "tls",
    }  # fmt: skip
    assert parse_mail_server("smtp", "mail.example.org:587", None).security == "starttls"
    assert parse_mail_server("smtp", "mail.example.org", "starttls").port == 587
    assert parse_mail_server("imap", "mail.example.org", "starttls").port == 143
    assert parse_mail_server("smtp", "mail.example.org:465", None).security == "tls"
    with pytest.raises(CallerMistake):
        parse_mail_server("imap", "127.0.0.1.example.org:143", "none")


def test_well_known_providers_need_an_address_only() -> None:
    for domain in (
        "gmail.com",
        "outlook.com",
        "icloud.com",
        "fastmail.com",
        "gmx.de",
        "yahoo.com",
        "posteo.de",
        "mailbox.org",
    ):
        provider = find_provider(domain.upper())
        assert provider.known
        assert provider.imap.security == "tls"
        assert provider.smtp.security in ("tls", "starttls")
    assert (find_provider("bücher.example").imap.host, find_provider("x.org").known) == ("imap.bücher.example", False)


@pytest.mark.req("UX-01")
def test_a_terminal_asks_for_the_address_and_the_password_unseen(
    home: Home, house: House, terminal: Callable[..., Terminal]
) -> None:
    window = terminal("connect", "mail", *house.options, "--security", "none")
    window.expect("Mail address: ")
    window.type(f"{ADDRESS}\n")
    window.expect("Password: ")
    window.press(f"{PASSWORD}\n")
    shown = window.expect("Connected to the mailbox")
    assert window.wait() == 0
    assert PASSWORD not in shown + window.seen
    account = kept(home)
    assert account is not None
    assert account.password.get_secret_value() == PASSWORD
