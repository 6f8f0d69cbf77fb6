"""A local server that answers like a guarding model, as the test says, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from support.timing import seconds

Reply = str | int | bytes
"""What the model says, a status without words, or a raw body."""


class GuardDouble:
    """Use it as a context manager; the last of `replies` is repeated. While `gate` is closed, requests wait."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.gate = threading.Event()
        self.gate.set()
        double = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                double.asked.append(body)
                double.headers.append({name.lower(): value for name, value in self.headers.items()})
                double.gate.wait(seconds(30))
                reply = double.replies.pop(0) if len(double.replies) > 1 else double.replies[0]
                self.send_response(reply if isinstance(reply, int) else 200)
                content = reply if isinstance(reply, bytes) else _spoken(reply)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                try:
                    self.wfile.write(content)
                except OSError:
                    self.close_connection = True

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def shown(self) -> str:
        """What the model was last shown."""
        return str(self.asked[-1]["messages"][-1]["content"])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.set()
        self._server.shutdown()
        self._thread.join(seconds(10))
        self._server.server_close()


def _spoken(reply: str | int) -> bytes:
    usage = {"prompt_tokens": 120, "completion_tokens": 9}
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": reply}}], "usage": usage}).encode()
