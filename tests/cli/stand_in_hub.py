"""The part of a hub that takes answers to questions, over real HTTP: what it is sent is kept for the test to read."""

from __future__ import annotations

import json
import socket
import threading
import time
from types import TracebackType
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annabelle.core.errors import AnnabelleError
from annabelle.core.home import Home
from support.timing import seconds


def asked(number: int, state: str = "pending", **fields: Any) -> dict[str, Any]:
    """One question, as the API tells it."""
    return {
        "id": f"apr_01k9zq3v7k{number:016d}",
        "state": state,
        "tool": "gmail_send_email",
        "arguments": {"to": ["anna@example.com"], "subject": "Hello", "body": "See you."},
        "edited": None,
        "reasons": ["You did not name anna@example.com."],
        "agentId": "annabelle",
        "threadId": "thr_1",
        "messageId": "msg_1",
        "createdAt": "2026-11-15T10:00:00Z",
        "expiresAt": "2026-11-16T10:00:00Z",
        "decidedAt": None,
        "note": None,
        "continuedBy": None,
        "always": {"words": "Always let annabelle call gmail_send_email with to = …", "match": {"tools": ["x"]}},
        **fields,
    }


class StandInHub:
    """Use it in a `with` block; the home then has a hub that runs."""

    def __init__(self, home: Home, *questions: dict[str, Any]) -> None:
        self.questions = {one["id"]: one for one in questions}
        self.answers: list[tuple[str, dict[str, Any]]] = []
        self.going_on: list[str | None] = ["msg_2"]
        """The message that carries the turn on, for each answer; the last one for all that follow."""
        self.task: str | None = None
        """The task in the background that asked."""
        self.replies: dict[str, list[dict[str, Any]]] = {"msg_2": [{"text": "It is sent."}]}
        self.refusal: AnnabelleError | None = None
        routes = [
            Route("/health", self._health),
            Route("/approvals", self._list),
            Route("/approvals/{id}", self._one),
            Route("/approvals/{id}", self._answer, methods=["POST"]),
            Route("/messages/{id}", self._message),
        ]
        self._socket = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(Starlette(routes=routes), log_config=None, access_log=False, lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)
        home.hub_file.write_text(json.dumps({"pid": 1, "url": f"http://127.0.0.1:{self._socket.getsockname()[1]}"}))
        home.token_file.write_text("a-token")

    async def _health(self, request: Request) -> Response:
        return JSONResponse({})

    async def _list(self, request: Request) -> Response:
        state = request.query_params.get("state")
        return JSONResponse({"approvals": [q for q in self.questions.values() if state in (None, q["state"])]})

    async def _one(self, request: Request) -> Response:
        return JSONResponse(self.questions[request.path_params["id"]])

    async def _answer(self, request: Request) -> Response:
        if self.refusal is not None:
            body = {"error": self.refusal.body().model_dump()}
            return JSONResponse(body, self.refusal.http_status)
        approval, answer = str(request.path_params["id"]), await request.json()
        self.answers.append((approval, answer))
        going_on = self.going_on.pop(0) if len(self.going_on) > 1 else self.going_on[0]
        rule = "rul_1" if answer.get("always") else None
        said = {"approval": self.questions[approval], "messageId": going_on, "taskId": self.task, "ruleId": rule}
        return JSONResponse(said)

    async def _message(self, request: Request) -> Response:
        return JSONResponse({"state": "done", "replies": self.replies[request.path_params["id"]]})

    def __enter__(self) -> Self:
        self._thread.start()
        deadline = time.monotonic() + seconds(10)
        while not self._server.started and time.monotonic() < deadline:
            time.sleep(0.005)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(timeout=seconds(10))
        self._socket.close()
