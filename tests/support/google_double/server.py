"""Runs the double inside the test's process, on a loop and a thread of its own."""

from __future__ import annotations

import logging
import socket
import threading
from types import TracebackType

import uvicorn
from pydantic import SecretStr

from annabelle.core.connections import GoogleAccount
from support.google_double.app import CLIENT_ID, CLIENT_SECRET, REFRESH_TOKEN, GoogleApp, Part
from support.timing import seconds


class GoogleDouble:
    """A running Google; use it in a `with` block, with the parts it should have. `url` is for GOOGLE_API_URL."""

    def __init__(self, *parts: Part) -> None:
        self.app = GoogleApp(parts)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # answers that break off are meant
        config = uvicorn.Config(self.app, log_config=None, access_log=False, lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def account(self, email: str = "ada@example.com") -> GoogleAccount:
        """The account as `annabelle connect google` would have kept it."""
        return GoogleAccount(
            email=email,
            client_id=CLIENT_ID,
            client_secret=SecretStr(CLIENT_SECRET),
            refresh_token=SecretStr(REFRESH_TOKEN),
        )

    def __enter__(self) -> GoogleDouble:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(timeout=seconds(10))
        self._socket.close()
