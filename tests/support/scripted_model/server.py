"""Runs the scripted model inside the test's process, on a loop and a thread of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

import uvicorn

from support.scripted_model.app import Recorded, ScriptedModel
from support.scripted_model.script import Rule, Script
from support.timing import seconds

__all__ = ["Recorded", "ScriptedServer"]


class ScriptedServer:
    """A running scripted model; use it in a `with` block. `url` has no `/v1`, `openai_url` has."""

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        *,
        models: Iterable[str] = ("scripted",),
        key: str | None = None,
        record: Path | None = None,
        port: int = 0,
        script: Script | None = None,
    ) -> None:
        """`script`: another mind than one that answers by rules."""
        self._model = ScriptedModel(script or Script(rules), models=models, key=key, record=record)
        self._socket = socket.create_server(("127.0.0.1", port))
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(self._model, log_config=None, access_log=False, lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def requests(self) -> list[Recorded]:
        return list(self._model.requests)

    def clear(self) -> None:
        self._model.clear()

    def rules(self, *rules: Rule) -> None:
        """Answer by these rules from now on."""
        self._model.script.replace(rules)

    def __enter__(self) -> ScriptedServer:
        # The socket listens already: a client that connects before the loop runs waits a moment, no more.
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(timeout=seconds(10))
        self._socket.close()
