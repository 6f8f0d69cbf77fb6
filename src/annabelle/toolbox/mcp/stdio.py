"""A connection to a server process over its pipes, and the MCP session on it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from annabelle import __version__
from annabelle.core.failpoints import failpoint
from annabelle.core.secrets.redactor import Redactor, SecretMatcher
from annabelle.core.tools import JsonObject
from annabelle.toolbox.mcp.connection import Connect, Connection, ServerIntroduction
from annabelle.toolbox.mcp.rpc import (
    PIPES_CLOSED,
    ConnectionLost,
    ProtocolMismatch,
    RpcAnswer,
    RpcClient,
    RpcError,
    WireError,
)
from annabelle.toolbox.process.launcher import ChildProcess, LaunchRequest, ProcessLauncher, read_last_line
from annabelle.toolbox.process.stderr_capture import launch_with_capture

MODERN = ("2026-07-28",)
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")

_PREFIX = "io.modelcontextprotocol/"
_CLIENT: JsonObject = {"name": "annabelle", "version": __version__}
_UNSUPPORTED_VERSION = -32022
_MAX_PAGES = 100
_CLOSING = (-32000, "Connection closed")
"""What servers made with the SDK answer to calls they drop while they shut down."""


def _envelope(version: str) -> JsonObject:
    """What a 2026 request carries about its sender. We offer no sampling, no elicitation and no roots."""
    return {
        f"{_PREFIX}protocolVersion": version,
        f"{_PREFIX}clientInfo": _CLIENT,
        f"{_PREFIX}clientCapabilities": {},
    }


def _as_strings(value: object) -> list[str]:
    return [item for item in cast("list[object]", value) if isinstance(item, str)] if isinstance(value, list) else []


def _as_object(value: object) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}


class McpSession:
    """An MCP session, of the 2026 revision or of an older one with a handshake."""

    def __init__(self, rpc: RpcClient, probe_seconds: float) -> None:
        self._rpc, self._probe_seconds = rpc, probe_seconds
        self._meta: JsonObject = {}
        self._modern = False
        self._tools_change = False
        self._capabilities: JsonObject = {}
        self._listening: asyncio.Future[RpcAnswer] | None = None
        self.protocol: str | None = None
        self.server: JsonObject = {}
        """Its name and version, as it says."""
        self.instructions = ""

    async def negotiate(self) -> None:
        """Ask which versions the server supports; without a clear answer it is taken for an older one."""
        version = MODERN[-1]
        for attempt in (1, 2):
            try:
                async with asyncio.timeout(self._probe_seconds):
                    found = await self._discover(version)
            except TimeoutError:
                found = None
            except RpcError as error:
                supported = _as_strings(_as_object(error.data).get("supported"))
                mutual = _mutual_versions(supported)
                if error.code == _UNSUPPORTED_VERSION and mutual and attempt == 1:
                    version = mutual[-1]
                    continue
                if error.code == _UNSUPPORTED_VERSION and supported and not set(supported) & set(HANDSHAKE):
                    raise ProtocolMismatch(f"it speaks only {', '.join(supported)}") from error
                found = None
            mutual = _mutual_versions(_as_strings((found or {}).get("supportedVersions")))
            if found is not None and mutual:
                self._adopt_modern(mutual[-1], found)
                return
            try:
                await self._handshake()
            except RpcError as error:
                # A slow modern server may have answered the probe too late.
                mutual = _mutual_versions(_as_strings(_as_object(error.data).get("supported")))
                if error.code != _UNSUPPORTED_VERSION or not mutual or attempt == 2:
                    raise
                version = mutual[-1]
                continue
            return

    async def listen(self) -> None:
        """Subscribe to changes of the tools; older servers send them without a subscription."""
        if self._modern and self._tools_change:
            _, self._listening = await self._rpc.send(
                "subscriptions/listen", self._params({"notifications": {"toolsListChanged": True}})
            )
            self._listening.add_done_callback(_ignore_outcome)

    async def list_tools(self) -> list[JsonObject]:
        return await self._list_pages("tools/list", "tools")

    async def list_prompts(self) -> list[JsonObject]:
        return await self._list_optional("prompts", "prompts/list", "prompts")

    async def list_resources(self) -> list[JsonObject]:
        """Resources and resource templates; a server may have only one kind."""
        listed = await self._list_optional("resources", "resources/list", "resources")
        return listed + await self._list_optional("resources", "resources/templates/list", "resourceTemplates")

    async def _list_optional(self, capability: str, method: str, what: str) -> list[JsonObject]:
        """List what is only compared; a server that cannot list it has none."""
        if capability not in self._capabilities:
            return []
        try:
            return await self._list_pages(method, what)
        except RpcError:
            return []

    async def _list_pages(self, method: str, what: str) -> list[JsonObject]:
        found: list[JsonObject] = []
        cursor: object = None
        for _ in range(_MAX_PAGES):
            params: JsonObject = {"cursor": cursor} if isinstance(cursor, str) else {}
            page = await self._rpc.request(method, self._params(params))
            listed = page.get(what)
            found += [_as_object(one) for one in cast("list[object]", listed)] if isinstance(listed, list) else []
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or not cursor:
                break
        return found

    async def call_tool(self, name: str, arguments: JsonObject, meta: JsonObject) -> RpcAnswer:
        number, answer = await self._rpc.send(
            "tools/call", {"name": name, "arguments": arguments, "_meta": {**self._meta, **meta}}
        )
        failpoint("toolbox.after_dispatch")
        try:
            return await self._rpc.wait(number, answer)
        except RpcError as error:
            if (error.code, error.message) == _CLOSING:
                raise ConnectionLost("it was shut down", sent=True) from error
            raise

    async def ping(self) -> None:
        """The 2026 revision has no ping; discovery serves as one."""
        await self._rpc.request("server/discover" if self._modern else "ping", self._params({}))

    async def _discover(self, version: str) -> JsonObject:
        return await self._rpc.request("server/discover", {"_meta": _envelope(version)}, cancellable=False)

    def _adopt_modern(self, version: str, found: JsonObject) -> None:
        self._modern, self.protocol, self._meta = True, version, _envelope(version)
        self._store_server_info(found, _as_object(found.get("_meta")).get(f"{_PREFIX}serverInfo"))
        self._tools_change = _as_object(self._capabilities.get("tools")).get("listChanged") is True

    async def _handshake(self) -> None:
        found = await self._rpc.request(
            "initialize",
            {"protocolVersion": HANDSHAKE[-1], "capabilities": {}, "clientInfo": _CLIENT},
            cancellable=False,
        )
        version = found.get("protocolVersion")
        if version not in HANDSHAKE:
            raise ProtocolMismatch(f"it offers protocol revision {version}, which is not known here")
        self._modern, self.protocol, self._meta = False, str(version), {}
        self._store_server_info(found, found.get("serverInfo"))
        self._rpc.notify("notifications/initialized")

    def _store_server_info(self, found: JsonObject, server: object) -> None:
        self._capabilities, self.server = _as_object(found.get("capabilities")), _as_object(server)
        said = found.get("instructions")
        self.instructions = said if isinstance(said, str) else ""

    def _params(self, params: JsonObject) -> JsonObject:
        return {**params, "_meta": self._meta} if self._meta else params


def _mutual_versions(versions: list[str]) -> list[str]:
    return [version for version in MODERN if version in versions]


def _ignore_outcome(answer: asyncio.Future[RpcAnswer]) -> None:
    """A subscription ends with its connection; that is no error anyone has to hear of."""
    if not answer.cancelled():
        answer.exception()


_LAST_WORDS_SECONDS = 0.5
_TOOLS_CHANGED = "notifications/tools/list_changed"


@dataclass(frozen=True, slots=True)
class StdioOptions:
    """Message limit, time for the version probe, and the redactor for what the server prints."""

    message_max_bytes: int
    probe_seconds: float
    redact: Redactor


class StdioConnection:
    """Ends when the process ends or closes its pipes; closing it ends the process."""

    def __init__(self, child: ChildProcess, rpc: RpcClient, session: McpSession, known: SecretMatcher) -> None:
        self._child, self._rpc, self._session, self._known = child, rpc, session, known
        child.exited.add_done_callback(self._on_exit)

    @property
    def pid(self) -> int | None:
        return self._child.pid

    @property
    def protocol(self) -> str | None:
        return self._session.protocol

    @property
    def garbage_lines(self) -> int:
        return self._rpc.garbage_lines

    @property
    def ended(self) -> asyncio.Future[str]:
        return self._rpc.ended

    @property
    def exit_reason(self) -> str | None:
        """Closed pipes are often noticed before the exit of the process, which says more."""
        by_itself = self._rpc.ended.done() and self._rpc.ended.result() == PIPES_CLOSED
        return _describe_exit(self._child.exited.result()) if by_itself and self._child.exited.done() else None

    async def introduce(self) -> ServerIntroduction:
        session = self._session
        introduction = ServerIntroduction(
            str(session.server.get("name", "")),
            str(session.server.get("version", "")),
            session.instructions,
            tuple(await session.list_prompts()),
            tuple(await session.list_resources()),
        )
        return introduction.mask(self._known)

    async def list_tools(self) -> list[JsonObject]:
        return [self._known.mask_object(tool) for tool in await self._session.list_tools()]

    async def call_tool(self, name: str, arguments: JsonObject, meta: JsonObject) -> RpcAnswer:
        return await self._session.call_tool(name, arguments, meta)

    async def ping(self) -> None:
        await self._session.ping()

    async def close(self, grace: float) -> None:
        """Close its input, which asks it to end; then TERM, then KILL."""
        self._rpc.close_input()
        if not await self._child.wait(grace / 2):
            await self._child.end(grace / 2)
        self._rpc.end("it was stopped")

    def _on_exit(self, exited: asyncio.Future[int | None]) -> None:
        self._rpc.end(_describe_exit(exited.result()))


def _describe_exit(code: int | None) -> str:
    how = "" if code is None else f" with code {code}" if code >= 0 else f" by signal {-code}"
    return f"its process ended{how}"


def stdio_connect(launcher: ProcessLauncher, request: LaunchRequest, options: StdioOptions) -> Connect:
    """Returns a function that starts the server's process and opens a session with it."""

    async def connect(on_tools_changed: Callable[[], None]) -> Connection:
        def on_notification(method: str, params: JsonObject) -> None:
            if method == _TOOLS_CHANGED:
                on_tools_changed()

        log_size = request.log.stat().st_size if request.log.exists() else 0
        child, capture = await launch_with_capture(launcher, request, options.redact)
        rpc = RpcClient(request.name, options.message_max_bytes, on_notification)
        try:
            await rpc.open(child.stdin, child.stdout)
            session = McpSession(rpc, options.probe_seconds)
            # Our own servers list no secrets.
            known = options.redact.distinctive_secrets if request.module is None else SecretMatcher(())
            connection = StdioConnection(child, rpc, session, known)
            await session.negotiate()
            await session.listen()
        except WireError as error:
            if not isinstance(error, ConnectionLost) or not await child.wait(0.5):
                await child.end(0.5)
            rpc.end("it did not start")
            reason = error.reason if isinstance(error, ConnectionLost) else str(error)
            if reason == PIPES_CLOSED and child.exited.done():
                reason = _describe_exit(child.exited.result())
            await capture.wait_drained(_LAST_WORDS_SECONDS)
            said = options.redact(read_last_line(request.log)) if _has_grown(request.log, log_size) else ""
            raise ConnectionLost(f"{reason}{f'; it said: {said}' if said else ''}", sent=False) from error
        except BaseException:
            rpc.end("it did not start")
            await asyncio.shield(asyncio.ensure_future(child.end(0)))
            raise
        return connection

    return connect


def _has_grown(log: Path, size: int) -> bool:
    try:
        return os.stat(log).st_size > size
    except OSError:
        return False
