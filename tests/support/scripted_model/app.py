"""The scripted model as an ASGI application: protocol in, script, protocol out, every request written down."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from support.scripted_model import anthropic_wire, openai_wire
from support.scripted_model.conversation import Conversation, Json, from_anthropic, from_openai
from support.scripted_model.script import Failure, Reply, Rule, Script

_RULES = TypeAdapter(list[Rule])


@dataclass(frozen=True)
class Recorded:
    """One request as it arrived."""

    number: int
    at: float
    path: str
    body: Json
    conversation: Conversation
    headers: dict[str, str]

    def line(self) -> Json:
        return {
            "number": self.number,
            "at": self.at,
            "path": self.path,
            "user_text": self.conversation.user_text,
            "results": len(self.conversation.results),
            "body": self.body,
        }


class ScriptedModel:
    """Matches paths by their end, so that any provider's base URL works."""

    def __init__(
        self,
        script: Script,
        *,
        models: Iterable[str] = ("scripted",),
        key: str | None = None,
        record: Path | None = None,
        keep: bool = True,
    ) -> None:
        self.script, self._models, self._key, self._record, self._keep = script, list(models), key, record, keep
        self._lock = threading.Lock()
        self._count = 0
        self.requests: list[Recorded] = []

    def clear(self) -> None:
        with self._lock:
            self.requests.clear()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        path, method = scope["path"], scope["method"]
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        if path == "/__requests":
            if method == "DELETE":
                self.clear()
            with self._lock:
                lines = [request.line() for request in self.requests]
            await _json(send, {"count": self._count, "requests": lines})
        elif path == "/__script":
            self.script.replace(_RULES.validate_json(body))
            await _json(send, {"ok": True})
        elif path.endswith("/models"):
            listed = [{"id": model, "object": "model", "created": 0, "owned_by": "test"} for model in self._models]
            await _json(send, {"object": "list", "data": listed})
        elif path.endswith(("/chat/completions", "/messages")):
            await self._answer(scope, body, receive, send)
        else:
            await _json(send, {"error": {"message": f"no such path {path}"}}, status=404)

    async def _answer(self, scope: Any, raw: bytes, receive: Any, send: Any) -> None:
        anthropic = scope["path"].endswith("/messages")
        wire = anthropic_wire if anthropic else openai_wire
        body: Json = json.loads(raw)
        talk = from_anthropic(body) if anthropic else from_openai(body)
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        number = self._note(scope["path"], body, talk, headers)
        sent_key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        if self._key is not None and sent_key != self._key:
            reply = Reply(error=Failure(status=401, message=f"Incorrect API key provided: {sent_key}"))
        else:
            reply = self.script.answer(talk)
        if reply.delay:
            await asyncio.sleep(reply.delay)
        if reply.hang:
            await _until_gone(receive)
        elif reply.error is not None and reply.error_after is None:
            after = reply.error.retry_after
            extra = [] if after is None else [(b"retry-after", str(after).encode())]
            await _json(send, wire.error(reply.error), reply.error.status, extra)
        elif talk.stream and not reply.whole:
            body, end = wire.chunks(reply, talk, number)
            if reply.error is not None:
                body, end = body[: reply.error_after], [wire.error_event(reply.error)]
            await _stream(reply, (body, end), receive, send)
        else:
            await _json(send, wire.whole(reply, talk, number))

    def _note(self, path: str, body: Json, talk: Conversation, headers: dict[str, str]) -> int:
        with self._lock:
            self._count += 1
            recorded = Recorded(self._count, time.time(), path, body, talk, headers)
            if self._keep:
                self.requests.append(recorded)
            if self._record is not None:
                with self._record.open("a") as file:
                    file.write(json.dumps(recorded.line()) + "\n")
            return self._count


async def _json(send: Any, data: Json, status: int = 200, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    start = [(b"content-type", b"application/json"), *(headers or [])]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": json.dumps(data).encode()})


async def _stream(reply: Reply, parts: tuple[list[bytes], list[bytes]], receive: Any, send: Any) -> None:
    body, end = parts
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for number, piece in enumerate(body):
        if number == reply.drop_after:
            return  # the server breaks the connection when a response stays unfinished
        if number == reply.hang_after:
            await _until_gone(receive)
            return
        if number == reply.cut_after:
            await send({"type": "http.response.body", "body": b""})
            return
        if reply.chunk_delay and number:
            await asyncio.sleep(reply.chunk_delay)
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"".join(end)})


async def _until_gone(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
