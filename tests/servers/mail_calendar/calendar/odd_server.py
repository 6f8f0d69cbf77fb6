"""A CalDAV server that answers as it is told, which a real one can not be made to."""

from __future__ import annotations

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import cast
from xml.sax.saxutils import escape

from annabelle.core.connections import MailAccount, MailServerAddress
from support.timing import seconds

_PART = """<d:response><d:href>{href}</d:href><d:propstat><d:prop>{props}</d:prop>
<d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>"""


class OddServer:
    """It has one calendar, whose events are whatever `events` says; `instead` answers everything."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.instead: tuple[int, dict[str, str], bytes] | None = None
        self.drops: set[str] = set()
        """Methods after which the connection breaks without an answer."""
        self.reached, self.gate = threading.Event(), threading.Event()
        """A request has come; requests are answered from now on."""
        self.gate.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.odd = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def account(self) -> MailAccount:
        nowhere = MailServerAddress(host="127.0.0.1", port=9, security="none")
        return MailAccount(
            address="ada@example.com",
            username="ada",
            password="secret-1",  # type: ignore[arg-type]
            imap=nowhere,
            smtp=nowhere,
            caldav_url=f"http://127.0.0.1:{self._server.server_address[1]}/home/",
        )

    def answer(self, method: str, path: str) -> tuple[int, dict[str, str], bytes]:
        if self.instead is not None:
            return self.instead
        if method == "GET":
            number = int(path.rsplit("/", 1)[-1].removesuffix(".ics"))
            return 200, {"ETag": '"1"'}, self.events[number].encode()
        if method == "PROPFIND":
            props = (
                "<c:calendar-home-set><d:href>/home/</d:href></c:calendar-home-set>"
                "<d:resourcetype><d:collection/><c:calendar/></d:resourcetype>"
            )
            parts = _PART.format(href="/home/main/", props=props)
        else:
            parts = "".join(
                _PART.format(
                    href=f"/home/main/{number}.ics", props=f"<c:calendar-data>{escape(text)}</c:calendar-data>"
                )
                for number, text in enumerate(self.events)
            )
        spaces = 'xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"'
        return 207, {}, f"<d:multistatus {spaces}>{parts}</d:multistatus>".encode()

    def __enter__(self) -> OddServer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join(timeout=seconds(10))
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        odd = cast("OddServer", self.server.odd)  # type: ignore[attr-defined]
        self.rfile.read(int(self.headers.get("content-length") or 0))
        odd.reached.set()
        odd.gate.wait(seconds(20))
        if self.command in odd.drops:
            self.close_connection = True
            return
        status, headers, body = odd.answer(self.command, self.path)
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        with contextlib.suppress(ConnectionError):  # who asked may be gone
            self.end_headers()
            self.wfile.write(body)

    do_GET = do_PUT = do_DELETE = do_PROPFIND = do_REPORT = _answer

    def log_message(self, format: str, *args: object) -> None:
        pass
