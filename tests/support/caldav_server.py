"""A real CalDAV server (Radicale) inside the test's process, with one user and whatever calendars a test makes."""

from __future__ import annotations

import base64
import http.client
import socketserver
import ssl
import threading
import wsgiref.simple_server
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import escape

from pydantic import SecretStr
from radicale import config as radicale_config
from radicale.app import Application

from annabelle.core.connections import MailAccount, MailServerAddress
from support.timing import seconds

USER = "ada"
PASSWORD = "caldav-password-1"
ADDRESS = "ada@example.com"

_MAKE = """<?xml version="1.0" encoding="utf-8"?>
<c:mkcalendar xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><d:set><d:prop>
<d:displayname>{name}</d:displayname>
<c:supported-calendar-component-set><c:comp name="{kind}"/></c:supported-calendar-component-set></d:prop></d:set>
</c:mkcalendar>"""


class _Server(socketserver.ThreadingMixIn, wsgiref.simple_server.WSGIServer):
    daemon_threads = True


class _Quiet(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


class CalDavServer:
    """A running server: `account()` is what `annabelle connect mail` would have kept."""

    def __init__(self, port: int, folder: Path, scheme: str = "http") -> None:
        self.port, self._folder, self._scheme = port, folder, scheme

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}/"

    def account(self, password: str = PASSWORD, *, path: str = "") -> MailAccount:
        """Mail itself leads nowhere; replace `imap` and `smtp` where a test needs them."""
        nowhere = MailServerAddress(host="127.0.0.1", port=9, security="none")
        return MailAccount(
            address=ADDRESS,
            username=ADDRESS,
            password=SecretStr("mail-password-1"),
            imap=nowhere,
            smtp=nowhere,
            caldav_url=f"{self.url}{path}",
            caldav_username=USER,
            caldav_password=SecretStr(password),
        )

    def make_calendar(self, name: str, shown: str = "", kind: str = "VEVENT") -> None:
        status, _ = self.ask("MKCALENDAR", f"/{USER}/{name}/", _MAKE.format(name=escape(shown or name), kind=kind))
        assert status == 201, status

    def put(self, calendar: str, name: str, data: str) -> None:
        """Another program writes an event."""
        status, text = self.ask("PUT", f"/{USER}/{calendar}/{name}", data.replace("\n", "\r\n"))
        assert status in (201, 204), (status, text)

    def stored(self, calendar: str) -> dict[str, str]:
        """The events as they are on the server's disk, by their file names."""
        folder = self._folder / "collection-root" / USER / calendar
        return {file.name: file.read_text() for file in sorted(folder.glob("*.ics"))}

    def clear(self) -> None:
        """No calendars, as for a new user."""
        for calendar in (self._folder / "collection-root" / USER).glob("*/"):
            if not calendar.name.startswith("."):
                assert self.ask("DELETE", f"/{USER}/{calendar.name}/")[0] == 200

    def ask(self, method: str, path: str, body: str = "") -> tuple[int, str]:
        connection = (
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds(10))
            if self._scheme == "http"
            else http.client.HTTPSConnection(
                "127.0.0.1", self.port, timeout=seconds(10), context=ssl._create_unverified_context()
            )
        )
        token = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        try:
            connection.request(method, path, body.encode(), {"Authorization": f"Basic {token}"})
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()


@contextmanager
def caldav_server(folder: Path, tls: ssl.SSLContext | None = None) -> Generator[CalDavServer]:
    """Start it in an empty folder, with `tls` over https; it has stopped when the block ends."""
    users = folder / "users"
    users.write_text(f"{USER}:{PASSWORD}\n")
    configuration = radicale_config.load()
    configuration.update(
        {
            "auth": {
                "type": "htpasswd",
                "htpasswd_filename": str(users),
                "htpasswd_encryption": "plain",
                "delay": "0",
            },
            "storage": {"filesystem_folder": str(folder / "storage"), "_filesystem_fsync": "False"},
            "logging": {"level": "critical"},
        },
        "test",
        privileged=True,
    )
    with _Server(("127.0.0.1", 0), _Quiet) as server:
        server.set_app(Application(configuration))
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield CalDavServer(server.server_address[1], folder / "storage", "http" if tls is None else "https")
        finally:
            server.shutdown()
            thread.join(timeout=seconds(10))
