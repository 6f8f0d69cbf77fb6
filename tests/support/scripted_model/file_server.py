"""Serves one file over HTTP, with the faults a download meets."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from support.timing import seconds


class FileServer:
    """Change its attributes while it runs: content, status, ranges, and where it breaks off."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.status = 200
        self.knows_ranges = True
        self.break_after: int | None = None
        self.linked_etag: str | None = None
        self.ranges: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/tiny.gguf"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        files = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: object) -> None:
                pass

            def do_HEAD(self) -> None:
                self.send_response(302)
                self.send_header("location", files.url)
                if files.linked_etag is not None:
                    self.send_header("x-linked-etag", files.linked_etag)
                    self.send_header("x-linked-size", str(len(files.content)))
                self.send_header("content-length", "0")
                self.end_headers()

            def do_GET(self) -> None:
                asked = self.headers.get("range", "")
                files.ranges.append(asked)
                start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and files.knows_ranges else 0
                if files.status != 200 or start >= len(files.content):
                    self.send_response(files.status if files.status != 200 else 416)
                    self.send_header("content-length", "0")
                    self.end_headers()
                    return
                body = files.content[start:]
                self.send_response(206 if start else 200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body if files.break_after is None else body[: files.break_after])

        return Handler

    def __enter__(self) -> FileServer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join(timeout=seconds(10))
        self._server.server_close()
