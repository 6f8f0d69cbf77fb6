"""Counterparts to sign in to: Google's consent page and tokens, a mailbox, a calendar; and a browser."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2 as httpx
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

from support.timing import seconds

CODE = "code-of-the-consent"
REFRESH = "refresh-token-nobody-may-see"
ACCESS = "access-token-nobody-may-see"


@contextmanager
def serving(
    handler: type[socketserver.BaseRequestHandler], state: Any, kind: type = ThreadingHTTPServer
) -> Iterator[int]:
    """A server on a free port of this machine, with its state where its handlers find it."""
    with kind(("127.0.0.1", 0), handler) as server:
        server.state = state
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join(seconds(10))


@dataclass
class Google:
    """What Google would decide, and what it was asked."""

    client_id: str = "client-1"
    secret: str = "client-secret-nobody-may-see"
    consent: dict[str, str] = field(default_factory=lambda: {"code": CODE})
    scopes: str | None = None
    token_error: tuple[int, dict[str, str]] | None = None
    profile_status: int = 200
    asked: dict[str, str] = field(default_factory=dict)
    revoked: list[str] = field(default_factory=list)
    revoke_status: int = 200
    url: str = ""


class GoogleHandler(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    @property
    def google(self) -> Google:
        return self.server.state  # pyright: ignore

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/o/oauth2/v2/auth":
            self.google.asked = asked = {name: values[0] for name, values in parse_qs(url.query).items()}
            sent = {"state": asked["state"], **self.google.consent}
            self.send_response(302)
            self.send_header("Location", f"{asked['redirect_uri']}?{urlencode(sent)}")
            self.end_headers()
        elif url.path == "/gmail/v1/users/me/profile":
            allowed = self.headers["Authorization"] == f"Bearer {ACCESS}"
            self._answer(self.google.profile_status if allowed else 401, {"emailAddress": "ada@example.com"})
        else:
            self._answer(404, {})

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        sent = {name: values[0] for name, values in form.items()}
        if self.path == "/revoke":
            self.google.revoked.append(sent["token"])
            self._answer(self.google.revoke_status, {})
        elif self.google.token_error is not None:
            self._answer(*self.google.token_error)
        else:
            self._answer(*self._token(sent))

    def _token(self, sent: dict[str, str]) -> tuple[int, dict[str, str]]:
        google = self.google
        digest = hashlib.sha256(sent["code_verifier"].encode()).digest()
        proves = base64.urlsafe_b64encode(digest).decode().rstrip("=") == google.asked["code_challenge"]
        if (sent["client_id"], sent["client_secret"]) != (google.client_id, google.secret):
            return 401, {"error": "invalid_client"}
        if not proves or sent["code"] != CODE or sent["redirect_uri"] != google.asked["redirect_uri"]:
            return 400, {"error": "invalid_grant", "error_description": f"Bad code {sent['code']}"}
        scope = google.asked["scope"] if google.scopes is None else google.scopes
        return 200, {"access_token": ACCESS, "refresh_token": REFRESH, "scope": scope, "token_type": "Bearer"}

    def _answer(self, status: int, body: dict[str, str]) -> None:
        blob = httpx.Response(200, json=body).content
        self.send_response(status)
        self.send_header("Content-Length", str(len(blob)))
        self.end_headers()
        self.wfile.write(blob)


class Browser:
    """Opens what it is told in a thread, follows where it leads, and keeps the page it ends on."""

    def __init__(self, *before: str) -> None:
        self.opened: list[str] = []
        self.pages: list[httpx.Response] = []
        self._before = before
        self._threads: list[threading.Thread] = []

    def open(self, url: str) -> bool:
        self.opened.append(url)
        self._threads.append(threading.Thread(target=self._visit, args=(url,)))
        self._threads[-1].start()
        return True

    def _visit(self, url: str) -> None:
        back = parse_qs(urlsplit(url).query)["redirect_uri"][0]
        with httpx.Client(trust_env=False, timeout=seconds(10), follow_redirects=True) as http:
            self.pages += [http.get(f"{back}{more}") for more in self._before]
            self.pages.append(http.get(url))

    def close(self) -> None:
        for thread in self._threads:
            thread.join(seconds(10))


@dataclass
class Mailbox:
    """An IMAP server with one user. It speaks as much of the protocol as a sign-in needs."""

    username: str
    password: str
    plain: bool = True
    tls: ssl.SSLContext | None = None
    offers_starttls: bool = False
    greets: bool = True
    signed_in: int = 0


class ImapHandler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        with contextlib.suppress(OSError):  # whoever called may hang up at any word
            self._speak()

    def finish(self) -> None:
        with contextlib.suppress(OSError):
            super().finish()
        self.connection.close()

    def _speak(self) -> None:
        box: Mailbox = self.server.state  # pyright: ignore
        if not box.greets:
            self.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n")
            return
        if box.tls is not None and not box.offers_starttls:
            self._secure(box.tls)
        words = ["IMAP4rev1", *(["AUTH=PLAIN"] if box.plain else []), *(["STARTTLS"] if box.offers_starttls else [])]
        capability = " ".join(words).encode()
        self.wfile.write(b"* OK [CAPABILITY " + capability + b"] ready\r\n")
        while line := self.rfile.readline().strip():
            tag, _, command = line.partition(b" ")
            name = command.split(b" ")[0].upper()
            if name == b"CAPABILITY":
                self.wfile.write(b"* CAPABILITY " + capability + b"\r\n" + tag + b" OK done\r\n")
            elif name == b"STARTTLS" and box.tls is not None:
                self.wfile.write(tag + b" OK done\r\n")
                self._secure(box.tls)
            elif name == b"AUTHENTICATE":
                self.wfile.write(b"+ \r\n")
                _, user, password = base64.b64decode(self.rfile.readline()).decode().split("\0")
                self._judge(tag, user, password)
            elif name == b"LOGIN":
                _, user, password = command.decode().split(" ", 2)
                self._judge(tag, user.strip('"'), password.strip('"'))
            elif name == b"LOGOUT":
                self.wfile.write(b"* BYE now\r\n" + tag + b" OK done\r\n")
                return
            else:
                self.wfile.write(tag + b" BAD what\r\n")

    def _judge(self, tag: bytes, user: str, password: str) -> None:
        box: Mailbox = self.server.state  # pyright: ignore
        fits = (user, password) == (box.username, box.password)
        box.signed_in += fits
        self.wfile.write(tag + (b" OK done\r\n" if fits else f" NO wrong: {password}\r\n".encode()))

    def _secure(self, context: ssl.SSLContext) -> None:
        self.connection = context.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", buffering=0)


class SmtpServer(Controller):
    """A server that takes mail from one user."""

    def __init__(self, username: str, password: str, tls: ssl.SSLContext | None = None) -> None:
        self._known, self._tls = (username, password), tls
        self.signed_in = 0
        super().__init__(object(), hostname="127.0.0.1", port=0)

    def factory(self) -> SMTP:
        return SMTP(
            self.handler,
            authenticator=self._judge,
            auth_require_tls=self._tls is not None,
            tls_context=self._tls,
        )

    def _judge(
        self, _server: object, _session: object, _envelope: object, _how: str, data: LoginPassword
    ) -> AuthResult:
        fits = (data.login.decode(), data.password.decode()) == self._known
        self.signed_in += fits
        return AuthResult(success=fits, handled=False)

    @property
    def listens_at(self) -> int:
        return self.server.sockets[0].getsockname()[1]  # pyright: ignore

    def _trigger_server(self) -> None:
        self.port = self.listens_at  # the port was any; the controller tries the one it got
        super()._trigger_server()


class CalendarHandler(BaseHTTPRequestHandler):
    """A calendar that opens for one user; its state is `user:password`, or a status to answer with."""

    def log_message(self, *_: object) -> None:
        pass

    def do_PROPFIND(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        known = self.server.state  # pyright: ignore
        wanted = f"Basic {base64.b64encode(str(known).encode()).decode()}"
        status = known if isinstance(known, int) else 207 if self.headers["Authorization"] == wanted else 401
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()


@contextmanager
def mail_sign_ins(username: str, password: str) -> Iterator[dict[str, str]]:
    """Servers of one mailbox, as the API is told of them."""
    smtp = SmtpServer(username, password)
    smtp.start()
    try:
        with serving(ImapHandler, Mailbox(username, password), socketserver.ThreadingTCPServer) as imap:
            yield {"imap": f"127.0.0.1:{imap}", "smtp": f"127.0.0.1:{smtp.listens_at}"}
    finally:
        smtp.stop()
