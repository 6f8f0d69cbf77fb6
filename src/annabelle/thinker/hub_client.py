"""The thinker's client of the hub: lists tools, calls them, reserves and settles model cost, and waits while the hub is
away (THK-06).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast
from urllib.parse import urlsplit

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
from annabelle.core.errors import ErrorBody, HubUnreachable, OperatorMistake, Unavailable
from annabelle.core.loopback_http import HttpReply, LoopbackHttpClient, NotConnected
from annabelle.core.tools import JsonObject, ToolResult
from annabelle.core.trace import current_trace

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HubRetryPolicy:
    """How long to wait between tries, when to speak up, and when to give up."""

    first_seconds: float = 0.1
    longest_seconds: float = 5.0
    tell_after_seconds: float = 5.0
    give_up_after_seconds: float = 600.0


async def retry_until_reachable(
    ask: Callable[[], Awaitable[T]], policy: HubRetryPolicy, notify: Callable[[str], None]
) -> T:
    """Ask until the hub answers, with growing waits."""
    started = time.monotonic()
    wait = policy.first_seconds
    told = False
    while True:
        try:
            return await ask()
        except HubUnreachable as away:
            waited = time.monotonic() - started
            if waited >= policy.give_up_after_seconds:
                raise
            if waited >= policy.tell_after_seconds and not told:
                notify(f"{away.message} The turn waits for it and goes on by itself.")
                told = True
            await asyncio.sleep(wait)
            wait = min(wait * 2, policy.longest_seconds)


class HubTransport:
    """Sends requests to the hub; raises `HubUnreachable` when it cannot be reached."""

    def __init__(self, base_url: str, headers: dict[str, str]) -> None:
        parts = urlsplit(base_url)
        if parts.scheme != "http" or parts.hostname is None or parts.port is None:
            raise OperatorMistake(f"The hub's address {base_url!r} is not of the form http://host:port.")
        self._netloc = parts.netloc
        self._http = LoopbackHttpClient(parts.hostname, parts.port, {"Content-Type": "application/json", **headers})

    async def request(
        self, method: str, path: str, body: bytes = b"", *, headers: dict[str, str], timeout: float
    ) -> HttpReply:
        """One exchange. A time-out also counts as unreachable: the hub bounds its own work far below it."""
        try:
            return await self._http.request(method, path, headers, body, timeout)
        except NotConnected as error:
            raise HubUnreachable(
                f"The hub at {self._netloc} can not be reached.", hint="Is `annabelle up` running?"
            ) from error
        except OSError as error:
            raise HubUnreachable(f"The hub does not answer: {error or type(error).__name__}.") from error

    def close(self) -> None:
        self._http.close()


class HubTools(Protocol):
    """The tools of the hub, as an agent may use them."""

    def expect_tools(self, version: str | None) -> None: ...

    async def tools(self) -> ToolList: ...

    async def call(self, call: ToolCall, user_id: str) -> ToolResult: ...


TOOLS_CACHE_SECONDS = 600.0
_SHORT_SECONDS = 30.0
# The hub bounds a call by the server's own timeout; this only catches a hub that is stuck.
_CALL_SECONDS = 1_900.0

_log = logging.getLogger(__name__)


class _HubRefusal(Exception):
    """The hub answered with an error of its own."""

    def __init__(self, status: int, body: ErrorBody) -> None:
        super().__init__(body.message)
        self.status, self.body = status, body


class ThinkerHubClient:
    """One per process. Also the `Ledger` that the model service books with."""

    def __init__(self, transport: HubTransport, retry_policy: HubRetryPolicy | None = None) -> None:
        self._transport = transport
        self._retry_policy = retry_policy or HubRetryPolicy()
        self._tools: ToolList | None = None
        self._fetched_at = 0.0
        self._wait_listeners: list[Callable[[str], None]] = []

    @classmethod
    def connect_to(cls, hub_url: str, secret: str) -> ThinkerHubClient:
        return cls(HubTransport(hub_url, {TOKEN_HEADER: secret}))

    def on_wait(self, listener: Callable[[str], None]) -> None:
        """Be told when the hub cannot be reached and a call waits for it."""
        self._wait_listeners.append(listener)

    def _notify_wait(self, reason: str) -> None:
        _log.warning("%s", reason)
        for listener in self._wait_listeners:
            listener(reason)

    async def tools(self) -> ToolList:
        """The tools this agent may use: kept for ten minutes, or until the hub says that they changed."""
        if self._tools is None or time.monotonic() - self._fetched_at > TOOLS_CACHE_SECONDS:
            reply = await self._request_or_fail("GET", "/tools/list")
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
            reply = await self._request("POST", "/tools/call", call, user_id=user_id, timeout=_CALL_SECONDS)
        except _HubRefusal as refusal:
            return ToolResult.failure(refusal.body)
        return ToolResult.model_validate_json(reply.body)

    async def reserve(self, request: Reserve) -> Reservation:
        reply = await self._request_or_fail("POST", "/internal/ledger/reserve", request)
        return Reservation.model_validate_json(reply.body)

    async def settle(self, call: ModelCall) -> None:
        await self._request_or_fail("POST", "/internal/ledger/settle", call)

    async def cost_status(self) -> JsonObject:
        """How fast this agent spends, and whether it is paused: the hub keeps that."""
        reply = await self._request_or_fail("GET", "/internal/ledger/status")
        return cast("JsonObject", pydantic_core.from_json(reply.body))

    def close(self) -> None:
        self._transport.close()

    async def _request_or_fail(self, method: str, path: str, body: BaseModel | None = None) -> HttpReply:
        """For what the hub has no reason to refuse: a refusal means that the two do not understand each other."""
        try:
            return await self._request(method, path, body)
        except _HubRefusal as refusal:
            raise Unavailable(f"The hub refused {path}: {refusal.body.message}", hint=refusal.body.hint) from refusal

    async def _request(
        self, method: str, path: str, body: BaseModel | None = None, *, user_id: str = "", timeout: float = 0.0
    ) -> HttpReply:
        trace = current_trace()
        headers = {TRACE_HEADER: trace} if trace else {}
        if user_id:
            headers[USER_HEADER] = user_id
        content = body.model_dump_json().encode() if body is not None else b""

        async def send_once() -> HttpReply:
            reply = await self._transport.request(
                method, path, content, headers=headers, timeout=timeout or _SHORT_SECONDS
            )
            self._check_tools_version(reply)
            if reply.status >= 400:
                raise _parse_refusal(reply)
            return reply

        return await retry_until_reachable(send_once, self._retry_policy, self._notify_wait)

    def _check_tools_version(self, reply: HttpReply) -> None:
        self.expect_tools(reply.headers.get(TOOLS_VERSION_HEADER.lower()))


def _parse_refusal(reply: HttpReply) -> Exception:
    """A hub that starts, stops or has a full disk is as good as unreachable; anything else is its answer."""
    try:
        content = cast("object", pydantic_core.from_json(reply.body))
        inner = cast("dict[str, object]", content).get("error") if isinstance(content, dict) else None
        body = ErrorBody.model_validate(inner)
    except (ValueError, ValidationError):
        body = ErrorBody(code="hub_refused", message=f"The hub answered with status {reply.status}.")
    if reply.status == 507 or (reply.status == 503 and body.code in ("unavailable", "hub_unreachable", "hub_refused")):
        return HubUnreachable(body.message, hint=body.hint)
    return _HubRefusal(reply.status, body)
