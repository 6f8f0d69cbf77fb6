"""The thinker's view of the hub: list tools, call one, reserve and settle model cost."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import cast

import pydantic_core
from pydantic import BaseModel, ValidationError

from annabelle.core.contract import (
    TOKEN_HEADER,
    TOOLS_VERSION_HEADER,
    TRACE_HEADER,
    USER_HEADER,
    ModelCall,
    Reservation,
    Reserve,
    ToolCall,
    ToolList,
)
from annabelle.core.errors import ErrorBody, HubUnreachable, Unavailable
from annabelle.core.tools import JsonObject, ToolResult
from annabelle.core.trace import current_trace
from annabelle.thinker.hub.patience import Patience, until_reached
from annabelle.thinker.hub.wire import HubWire, Reply

TOOLS_CACHE_SECONDS = 600.0
_SHORT_SECONDS = 30.0
# The hub bounds a call by the server's own timeout; this only catches a hub that is stuck.
_CALL_SECONDS = 1_900.0

_log = logging.getLogger(__name__)


class _Refusal(Exception):
    """The hub answered with an error of its own."""

    def __init__(self, status: int, body: ErrorBody) -> None:
        super().__init__(body.message)
        self.status, self.body = status, body


class HubClient:
    """One per process. Also the `Ledger` that the model service books with."""

    def __init__(self, wire: HubWire, patience: Patience | None = None) -> None:
        self._wire = wire
        self._patience = patience or Patience()
        self._tools: ToolList | None = None
        self._fetched_at = 0.0
        self.tell: Callable[[str], None] = _log.warning

    @classmethod
    def at(cls, hub_url: str, secret: str) -> HubClient:
        return cls(HubWire(hub_url, {TOKEN_HEADER: secret}))

    async def tools(self) -> ToolList:
        """The tools this agent may use: kept for ten minutes, or until the hub says that they changed."""
        if self._tools is None or time.monotonic() - self._fetched_at > TOOLS_CACHE_SECONDS:
            reply = await self._must("GET", "/tools/list")
            self._tools = ToolList.model_validate_json(reply.body)
            self._fetched_at = time.monotonic()
        return self._tools

    def expect_tools(self, version: str | None) -> None:
        """Fetch the list anew if it is not of this version: servers may have come and gone since the last turn."""
        if version is not None and self._tools is not None and version != self._tools.version:
            _log.info("the tool list changed to version %s", version)
            self._tools = None

    async def call(self, call: ToolCall, user_id: str) -> ToolResult:
        """Call a tool. An error of the hub comes back as a failed result: it is for the model to read."""
        try:
            reply = await self._ask("POST", "/tools/call", call, user_id=user_id, timeout=_CALL_SECONDS)
        except _Refusal as refusal:
            return ToolResult.failure(refusal.body)
        return ToolResult.model_validate_json(reply.body)

    async def reserve(self, request: Reserve) -> Reservation:
        reply = await self._must("POST", "/internal/ledger/reserve", request)
        return Reservation.model_validate_json(reply.body)

    async def settle(self, call: ModelCall) -> None:
        await self._must("POST", "/internal/ledger/settle", call)

    async def cost_status(self) -> JsonObject:
        """How fast this agent spends, and whether it is paused: the hub keeps that."""
        reply = await self._must("GET", "/internal/ledger/status")
        return cast("JsonObject", pydantic_core.from_json(reply.body))

    def close(self) -> None:
        self._wire.close()

    async def _must(self, method: str, path: str, body: BaseModel | None = None) -> Reply:
        """For what the hub has no reason to refuse: a refusal means that the two do not understand each other."""
        try:
            return await self._ask(method, path, body)
        except _Refusal as refusal:
            raise Unavailable(f"The hub refused {path}: {refusal.body.message}", hint=refusal.body.hint) from refusal

    async def _ask(
        self, method: str, path: str, body: BaseModel | None = None, *, user_id: str = "", timeout: float = 0.0
    ) -> Reply:
        trace = current_trace()
        headers = {TRACE_HEADER: trace} if trace else {}
        if user_id:
            headers[USER_HEADER] = user_id
        content = body.model_dump_json().encode() if body is not None else b""

        async def once() -> Reply:
            reply = await self._wire.request(method, path, content, headers=headers, timeout=timeout or _SHORT_SECONDS)
            self._look_at_version(reply)
            if reply.status >= 400:
                raise _refusal(reply)
            return reply

        return await until_reached(once, self._patience, self.tell)

    def _look_at_version(self, reply: Reply) -> None:
        self.expect_tools(reply.headers.get(TOOLS_VERSION_HEADER.lower()))


def _refusal(reply: Reply) -> Exception:
    """A hub that starts, stops or has a full disk is as good as unreachable; anything else is its answer."""
    try:
        content = cast("object", pydantic_core.from_json(reply.body))
        inner = cast("dict[str, object]", content).get("error") if isinstance(content, dict) else None
        body = ErrorBody.model_validate(inner)
    except (ValueError, ValidationError):
        body = ErrorBody(code="hub_refused", message=f"The hub answered with status {reply.status}.")
    if reply.status == 507 or (reply.status == 503 and body.code in ("unavailable", "hub_unreachable", "hub_refused")):
        return HubUnreachable(body.message, hint=body.hint)
    return _Refusal(reply.status, body)
