"""A small hub over real HTTP: lists tools, calls them exactly once per call id, and keeps the book of costs."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annabelle.core.contract import TOKEN_HEADER, TRACE_HEADER, ToolCall, ToolList
from annabelle.core.errors import ErrorBody
from annabelle.core.tools import ToolAnnotations, ToolResult, ToolSpec
from support.timing import seconds

Handler = Callable[[dict[str, Any]], ToolResult]


def tool(name: str, *, read_only: bool = False) -> ToolSpec:
    return ToolSpec(
        name=name,
        server="test",
        original_name=name,
        description=f"The tool {name}.",
        input_schema={"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": True},
        annotations=ToolAnnotations(read_only=read_only, destructive=False),
    )


class FakeHub:
    """Use it in a `with` block. Everything the thinker asked is in `calls`, `reserved`, `settled` and `traces`."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.version = "1"
        self.tools = [tool("look_up", read_only=True), tool("write_note"), tool("send_message")]
        self.handlers: dict[str, Handler] = {}
        self.refusals: dict[str, tuple[int, ErrorBody]] = {}
        self.calls: list[ToolCall] = []
        self.effects: list[str] = []
        self.running = self.most_running = 0
        self.lists = 0
        self.reserved: list[dict[str, Any]] = []
        self.settled: list[dict[str, Any]] = []
        self.traces: set[str | None] = set()
        self.tokens: set[str | None] = set()
        self.paused: str | None = None
        self.delay = 0.0
        self.held: set[str] = set()
        """Tools whose calls do not end before they are taken out of here."""
        self._taken: dict[str, asyncio.Task[ToolResult]] = {}
        routes = [
            Route("/tools/list", self._list),
            Route("/tools/call", self._call, methods=["POST"]),
            Route("/internal/ledger/reserve", self._reserve, methods=["POST"]),
            Route("/internal/ledger/settle", self._settle, methods=["POST"]),
        ]
        config = uvicorn.Config(Starlette(routes=routes), log_config=None, access_log=False, lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def call_ids(self) -> list[str | None]:
        return [call.call_id for call in self.calls]

    async def _list(self, request: Request) -> Response:
        self._look(request)
        self.lists += 1
        return self._answer(ToolList(version=self.version, tools=tuple(self.tools)).model_dump_json())

    async def _call(self, request: Request) -> Response:
        self._look(request)
        call = ToolCall.model_validate_json(await request.body())
        self.calls.append(call)
        if call.name in self.refusals:
            status, body = self.refusals[call.name]
            return JSONResponse({"error": body.model_dump()}, status, headers=self._headers())
        if call.call_id is None:
            return self._answer((await self._run(call)).model_dump_json())
        if call.call_id not in self._taken:
            self._taken[call.call_id] = asyncio.ensure_future(self._run(call))
        result = await asyncio.shield(self._taken[call.call_id])  # a call that still runs is joined, as at the real hub
        return self._answer(result.model_dump_json())

    async def _run(self, call: ToolCall) -> ToolResult:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        await asyncio.sleep(self.delay)
        while call.name in self.held:  # noqa: ASYNC110  the test that takes it out runs in another thread
            await asyncio.sleep(0.01)
        self.running -= 1
        handler = self.handlers.get(call.name, lambda arguments: ToolResult(text=f"did {arguments}"))
        result = handler(call.arguments)
        if call.call_id is not None:
            self.effects.append(call.call_id)
        return result

    async def _reserve(self, request: Request) -> Response:
        self._look(request)
        wanted = await request.json()
        self.reserved.append(wanted)
        return JSONResponse({"call_id": wanted["call_id"], "allowed": self.paused is None, "reason": self.paused})

    async def _settle(self, request: Request) -> Response:
        self._look(request)
        self.settled.append(await request.json())
        return Response(status_code=204)

    def _look(self, request: Request) -> None:
        self.traces.add(request.headers.get(TRACE_HEADER))
        self.tokens.add(request.headers.get(TOKEN_HEADER))

    def _answer(self, body: str) -> Response:
        return Response(body, media_type="application/json", headers=self._headers())

    def _headers(self) -> dict[str, str]:
        return {"X-Tools-Version": self.version}

    def __enter__(self) -> FakeHub:
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
