"""What we say to a server: agree on a revision, list tools, call them, ask whether it is alive."""

from __future__ import annotations

import asyncio
from typing import cast

from annabelle import __version__
from annabelle.core.failpoints import failpoint
from annabelle.core.tools import JsonObject
from annabelle.toolbox.protocol.errors import ConnectionLost, NotSpeaking, RpcError
from annabelle.toolbox.protocol.rpc import Answer, Rpc

MODERN = ("2026-07-28",)
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")

_PREFIX = "io.modelcontextprotocol/"
_CLIENT: JsonObject = {"name": "annabelle", "version": __version__}
_UNSUPPORTED_VERSION = -32022
_MAX_PAGES = 100
_CLOSING = (-32000, "Connection closed")
"""What the SDK's servers answer to calls they drop because they are ending."""


def _envelope(version: str) -> JsonObject:
    """What a 2026 request carries about its sender. We offer no sampling, no elicitation and no roots."""
    return {
        f"{_PREFIX}protocolVersion": version,
        f"{_PREFIX}clientInfo": _CLIENT,
        f"{_PREFIX}clientCapabilities": {},
    }


def _strings(value: object) -> list[str]:
    return [item for item in cast("list[object]", value) if isinstance(item, str)] if isinstance(value, list) else []


def _table(value: object) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}


class Session:
    """One negotiated conversation with a server, of the 2026 kind or of the older one with a handshake."""

    def __init__(self, rpc: Rpc, probe_seconds: float) -> None:
        self._rpc, self._probe_seconds = rpc, probe_seconds
        self._meta: JsonObject = {}
        self._modern = False
        self._tools_change = False
        self._capabilities: JsonObject = {}
        self._listening: asyncio.Future[Answer] | None = None
        self.protocol: str | None = None
        self.server: JsonObject = {}
        """Its name and version, as it says."""
        self.instructions = ""

    async def negotiate(self) -> None:
        """Ask a modern server what it speaks; everything that is no clear answer means an older one."""
        version = MODERN[-1]
        for attempt in (1, 2):
            try:
                async with asyncio.timeout(self._probe_seconds):
                    found = await self._discover(version)
            except TimeoutError:
                found = None
            except RpcError as error:
                supported = _strings(_table(error.data).get("supported"))
                mutual = _mutual(supported)
                if error.code == _UNSUPPORTED_VERSION and mutual and attempt == 1:
                    version = mutual[-1]
                    continue
                if error.code == _UNSUPPORTED_VERSION and supported and not set(supported) & set(HANDSHAKE):
                    raise NotSpeaking(f"it speaks only {', '.join(supported)}") from error
                found = None
            mutual = _mutual(_strings((found or {}).get("supportedVersions")))
            if found is not None and mutual:
                self._adopt_modern(mutual[-1], found)
                return
            try:
                await self._handshake()
            except RpcError as error:
                # A slow server may have answered our probe after we gave up on it: it is a modern one then.
                mutual = _mutual(_strings(_table(error.data).get("supported")))
                if error.code != _UNSUPPORTED_VERSION or not mutual or attempt == 2:
                    raise
                version = mutual[-1]
                continue
            return

    async def listen(self) -> None:
        """Have the server tell us when its tools change; older servers do so unasked."""
        if self._modern and self._tools_change:
            _, self._listening = await self._rpc.send(
                "subscriptions/listen", self._params({"notifications": {"toolsListChanged": True}})
            )
            self._listening.add_done_callback(_looked_at)

    async def list_tools(self) -> list[JsonObject]:
        return await self._pages("tools/list", "tools")

    async def list_prompts(self) -> list[JsonObject]:
        return await self._offered("prompts", "prompts/list", "prompts")

    async def list_resources(self) -> list[JsonObject]:
        """Resources and templates of resources; a server need not have both."""
        listed = await self._offered("resources", "resources/list", "resources")
        return listed + await self._offered("resources", "resources/templates/list", "resourceTemplates")

    async def _offered(self, capability: str, method: str, what: str) -> list[JsonObject]:
        """What we only look at: a server that can not list it is no worse for that."""
        if capability not in self._capabilities:
            return []
        try:
            return await self._pages(method, what)
        except RpcError:
            return []

    async def _pages(self, method: str, what: str) -> list[JsonObject]:
        found: list[JsonObject] = []
        cursor: object = None
        for _ in range(_MAX_PAGES):
            params: JsonObject = {"cursor": cursor} if isinstance(cursor, str) else {}
            page = await self._rpc.request(method, self._params(params))
            listed = page.get(what)
            found += [_table(one) for one in cast("list[object]", listed)] if isinstance(listed, list) else []
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or not cursor:
                break
        return found

    async def call_tool(self, name: str, arguments: JsonObject, meta: JsonObject) -> Answer:
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
        """The 2026 revision has no ping; asking again what the server speaks serves as one."""
        await self._rpc.request("server/discover" if self._modern else "ping", self._params({}))

    async def _discover(self, version: str) -> JsonObject:
        return await self._rpc.request("server/discover", {"_meta": _envelope(version)}, cancellable=False)

    def _adopt_modern(self, version: str, found: JsonObject) -> None:
        self._modern, self.protocol, self._meta = True, version, _envelope(version)
        self._acquaint(found, _table(found.get("_meta")).get(f"{_PREFIX}serverInfo"))
        self._tools_change = _table(self._capabilities.get("tools")).get("listChanged") is True

    async def _handshake(self) -> None:
        found = await self._rpc.request(
            "initialize",
            {"protocolVersion": HANDSHAKE[-1], "capabilities": {}, "clientInfo": _CLIENT},
            cancellable=False,
        )
        version = found.get("protocolVersion")
        if version not in HANDSHAKE:
            raise NotSpeaking(f"it offers protocol revision {version}, which is not known here")
        self._modern, self.protocol, self._meta = False, str(version), {}
        self._acquaint(found, found.get("serverInfo"))
        self._rpc.notify("notifications/initialized")

    def _acquaint(self, found: JsonObject, server: object) -> None:
        self._capabilities, self.server = _table(found.get("capabilities")), _table(server)
        said = found.get("instructions")
        self.instructions = said if isinstance(said, str) else ""

    def _params(self, params: JsonObject) -> JsonObject:
        return {**params, "_meta": self._meta} if self._meta else params


def _mutual(versions: list[str]) -> list[str]:
    return [version for version in MODERN if version in versions]


def _looked_at(answer: asyncio.Future[Answer]) -> None:
    """A subscription ends with its connection; that is no error anyone has to hear of."""
    if not answer.cancelled():
        answer.exception()
