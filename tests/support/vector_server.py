"""A local server that makes vectors in the shape of Ollama and of OpenAI, and misbehaves on demand."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

import numpy as np

from support import timing

Answer = tuple[int, object]


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, object]

    @property
    def texts(self) -> list[str]:
        return list(self.body["input"])  # pyright: ignore[reportArgumentType]


class VectorServer:
    """Use it as a context manager. `behave` replaces the answers; while `gate` is closed, requests wait."""

    def __init__(self, dimension: int = 8, port: int = 0) -> None:
        self.dimension = dimension
        self.asked: list[Asked] = []
        self.models = ["some-chat-model", "text-embedding-nomic-embed-text-v1.5"]
        self.behave: Callable[[Asked], Answer | bytes] = self.answer
        self.arrival = threading.Condition()
        self.gate = threading.Event()
        self.gate.set()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._reply({})

            def do_POST(self) -> None:
                self._reply(json.loads(self.rfile.read(int(self.headers["content-length"]))))

            def _reply(self, body: dict[str, object]) -> None:
                asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                with server.arrival:
                    server.asked.append(asked)
                    server.arrival.notify_all()
                server.gate.wait(timing.seconds(30))
                answer = server.behave(asked)
                if isinstance(answer, bytes):
                    self.wfile.write(answer)
                    self.close_connection = True
                    return
                status, value = answer
                content = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                try:
                    self.wfile.write(content)
                except OSError:
                    self.close_connection = True

            def log_message(self, *_: object) -> None: ...

        class Server(ThreadingHTTPServer):
            request_queue_size = 128

            def handle_error(self, request: object, client_address: object) -> None:
                if not isinstance(sys.exception(), ConnectionError):  # a caller that hung up is what tests are about
                    super().handle_error(request, client_address)  # pyright: ignore[reportArgumentType]

        self._http = Server(("127.0.0.1", port), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(timing.seconds(10))

    @property
    def port(self) -> int:
        return self._http.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def texts(self) -> list[str]:
        """Every text it was ever asked for."""
        return [text for asked in self.asked if "input" in asked.body for text in asked.texts]

    def wait_for(self, text: str, seconds: float = 30) -> bool:
        """Block until it is asked for a text."""
        with self.arrival:
            return self.arrival.wait_for(lambda: text in self.texts, timing.seconds(seconds))

    def vector(self, text: str) -> list[float]:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
        return np.random.default_rng(seed).standard_normal(self.dimension).tolist()

    def answer(self, asked: Asked) -> Answer:
        if asked.path == "/v1/models":
            return 200, {"data": [{"id": name} for name in self.models]}
        if asked.path == "/api/embed":
            return 200, {"embeddings": [self.vector(text) for text in asked.texts]}
        if asked.path == "/v1/embeddings":
            rows = [{"index": place, "embedding": self.vector(text)} for place, text in enumerate(asked.texts)]
            return 200, {"data": rows[::-1]}
        return 404, {}
