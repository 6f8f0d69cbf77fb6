"""Real mail servers for tests: Dovecot for IMAP, and an SMTP server that delivers into its mailboxes.

Any address is a mailbox, with the same password for all, so that every test can have a fresh one. Dovecot refuses to
run as root: started by root it runs as nobody.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from pydantic import SecretStr

from annabelle.core.connections import MailAccount, MailServerAddress
from support.timing import seconds

PASSWORD = "mail-password-1"
DOMAIN = "example.com"
REFUSED = f"refused@{DOMAIN}"
"""An address the SMTP server does not take."""

_CONFIG = """
base_dir = {folder}/run
state_dir = {folder}/run
log_path = {folder}/log
protocols = imap
listen = 127.0.0.1
{tls}
disable_plaintext_auth = no
auth_failure_delay = 0
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
mail_location = maildir:{folder}/mail/%u
mail_uid = {uid}
mail_gid = {gid}
first_valid_uid = 1
first_valid_gid = 1
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={folder}/mail/%u
}}
namespace inbox {{
  inbox = yes
  mailbox Drafts {{
    special_use = \\Drafts
    auto = subscribe
  }}
  mailbox Sent {{
    special_use = \\Sent
    auto = subscribe
  }}
  mailbox Trash {{
    special_use = \\Trash
    auto = subscribe
  }}
  mailbox Junk {{
    special_use = \\Junk
    auto = subscribe
  }}
}}
service imap-login {{
  chroot =
  process_min_avail = 1
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = {tls_port}
    ssl = yes
  }}
}}
service anvil {{
  chroot =
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}
service stats {{
  chroot =
}}
"""


@dataclass
class MailServers:
    """Running servers: ports, the password of every mailbox, and what the world does to them."""

    folder: Path
    uid: int
    gid: int
    imap_port: int
    smtp_port: int
    dovecot: int
    imaps_port: int = 0
    smtps_port: int = 0
    """The ports that are encrypted from the first byte; 0 without a certificate."""
    password: str = PASSWORD
    sent: list[Envelope] = field(default_factory=list)
    """What went out over SMTP."""
    hang_up: set[str] = field(default_factory=set)
    """Where the SMTP server hangs up: before or after it takes the content (`data`, `taken`)."""
    hang_up_after: Callable[[bytes], bool] = lambda _content: False
    """Whether it hangs up after it has taken this content."""
    refused: set[str] = field(default_factory=lambda: {REFUSED})

    def new_address(self) -> str:
        return f"ada-{uuid.uuid4().hex[:8]}@{DOMAIN}"

    def account(self, address: str, password: str | None = None) -> MailAccount:
        return MailAccount(
            address=address,
            username=address,
            password=SecretStr(password or self.password),
            imap=MailServerAddress(host="127.0.0.1", port=self.imap_port, security="none"),
            smtp=MailServerAddress(host="127.0.0.1", port=self.smtp_port, security="none"),
        )

    def encrypted_account(self, address: str, security: str, host: str = "127.0.0.1") -> MailAccount:
        """The same mailbox over `tls` or `starttls`; `host` is the name the certificate has to be for."""
        imap, smtp = (self.imaps_port, self.smtps_port) if security == "tls" else (self.imap_port, self.smtp_port)
        doors = {
            "imap": MailServerAddress(host=host, port=imap, security=security),
            "smtp": MailServerAddress(host=host, port=smtp, security=security),
        }
        return self.account(address).model_copy(update=doors)

    def deliver(self, address: str, data: bytes) -> None:
        """A mail comes in."""
        maildir = self.folder / "mail" / address
        for part in ("", "cur", "new", "tmp"):
            if not (maildir / part).is_dir():
                (maildir / part).mkdir()
                os.chown(maildir / part, self.uid, self.gid)
        name = f"{time.time_ns()}.{uuid.uuid4().hex}.test"
        (maildir / "tmp" / name).write_bytes(data)
        os.chown(maildir / "tmp" / name, self.uid, self.gid)
        (maildir / "tmp" / name).rename(maildir / "new" / name)

    def sent_to(self, address: str) -> list[Envelope]:
        return [one for one in self.sent if address in one.rcpt_tos]

    def sent_by(self, address: str) -> list[Envelope]:
        return [one for one in self.sent if one.mail_from == address]

    def break_connections(self) -> None:
        """End every open IMAP session, as a restart of the server would."""
        for process in psutil.Process(self.dovecot).children(recursive=True):
            with suppress(psutil.Error):
                if process.name() == "imap":
                    process.kill()
                    process.wait(seconds(10))


class _Handler:
    def __init__(self, servers: MailServers) -> None:
        self._servers = servers

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if not session.authenticated:
            return "530 Authentication required"
        if address in self._servers.refused:
            return "550 No such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        content = envelope.content
        assert isinstance(content, bytes)
        if "data" not in self._servers.hang_up:
            self._servers.sent.append(envelope)
            for address in envelope.rcpt_tos:
                if address.endswith(f"@{DOMAIN}"):
                    self._servers.deliver(address, content)
        if self._servers.hang_up or self._servers.hang_up_after(content):
            assert server.transport is not None
            server.transport.abort()
        return "250 OK"


def _authenticate(server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: object) -> AuthResult:
    right = isinstance(data, LoginPassword) and data.password == PASSWORD.encode()
    return AuthResult(success=right, handled=False)  # or the library waits for somebody else to answer


@contextmanager
def start_mail_servers(certificate: Path | None = None) -> Iterator[MailServers]:
    """Both servers on loopback, with nothing in their mailboxes. `certificate` is a PEM file with its key; with it they
    also speak TLS, and the SMTP server wants it."""
    owner = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    folder = Path(tempfile.mkdtemp(prefix="mail-servers-", dir="/tmp"))
    folder.chmod(0o755)
    for name in ("run", "mail"):
        (folder / name).mkdir()
        os.chown(folder / name, owner.pw_uid, owner.pw_gid)
    (folder / "log").touch()
    os.chown(folder / "log", owner.pw_uid, owner.pw_gid)
    imap_port, smtp_port = _free_port(), _free_port()
    imaps_port, smtps_port = (_free_port(), _free_port()) if certificate else (0, 0)
    tls = "ssl = no"
    if certificate:
        own = folder / "server.pem"
        own.write_bytes(certificate.read_bytes())
        os.chown(own, owner.pw_uid, owner.pw_gid)
        tls = f"ssl = yes\nssl_cert = <{own}\nssl_key = <{own}"

    config = folder / "dovecot.conf"
    config.write_text(
        _CONFIG.format(
            folder=folder,
            user=owner.pw_name,
            group=grp.getgrgid(owner.pw_gid).gr_name,
            uid=owner.pw_uid,
            gid=owner.pw_gid,
            password=PASSWORD,
            port=imap_port,
            tls=tls,
            tls_port=imaps_port,
        )
    )
    other = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    command = [shutil.which("dovecot") or "/usr/sbin/dovecot", "-F", "-c", str(config)]
    dovecot = subprocess.Popen(command, cwd=folder, env={"PATH": os.defpath}, **other)
    try:
        servers = MailServers(
            folder, owner.pw_uid, owner.pw_gid, imap_port, smtp_port, dovecot.pid, imaps_port, smtps_port
        )
        with ExitStack() as running:
            for controller in _controllers(servers, certificate):
                controller.start()
                running.callback(controller.stop)
            _wait_for(imap_port, folder / "log")
            yield servers
    finally:
        dovecot.terminate()
        dovecot.wait(seconds(20))
        shutil.rmtree(folder, ignore_errors=True)


def _controllers(servers: MailServers, certificate: Path | None) -> list[Controller]:
    # The library warns when it is itself to ask for passwords without encryption, so the handler does it.
    shared = {"authenticator": _authenticate, "auth_require_tls": False, "data_size_limit": 60_000_000}
    handler = _Handler(servers)
    if certificate is None:
        return [Controller(handler, hostname="127.0.0.1", port=servers.smtp_port, **shared)]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    upgraded = Controller(
        handler, hostname="127.0.0.1", port=servers.smtp_port, tls_context=context, require_starttls=True, **shared
    )
    return [upgraded, Controller(handler, hostname="127.0.0.1", port=servers.smtps_port, ssl_context=context, **shared)]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def _wait_for(port: int, log: Path) -> None:
    ends = time.monotonic() + seconds(20)
    while time.monotonic() < ends:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as connection:
            if connection.recv(100):
                return
        time.sleep(0.02)
    raise AssertionError(f"Dovecot did not start: {log.read_text()[-2000:]}")
