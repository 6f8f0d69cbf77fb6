"""An MCP server: lists and calls its tools, and turns every failure into a response."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.models import InitializationOptions
from mcp.server.runner import serve_dual_era_loop
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field

from annabelle import __version__
from annabelle.core.errors import AnnabelleError, UnknownTool
from annabelle.core.failpoints import failpoint
from annabelle.core.trace import accept_trace, current_trace, use_trace
from annabelle.servers.kit.call import META_KEY, enter_call, read_call
from annabelle.servers.kit.tools import DeclaredTool, Result, collect_tools, failure, success, tool

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server


Context = ServerRequestContext[dict[str, object], object]


@dataclass(frozen=True, slots=True)
class MethodEntry:
    """A method's handler, and the model its parameters are parsed into before it is called."""

    params_type: type[types.RequestParams]
    handler: object


class MethodRegistry:
    """A server's name and methods, for clients of both protocol eras."""

    def __init__(self, name: str, version: str, instructions: str | None, methods: dict[str, MethodEntry]) -> None:
        self._name, self._version, self._instructions = name, version, instructions
        self._methods = {
            "ping": MethodEntry(types.RequestParams, self._ping),
            "server/discover": MethodEntry(types.RequestParams, self._discover),
            **methods,
        }
        self.middleware: list[object] = []
        self.cache_hints: dict[str, object] = {}

    @property
    def capabilities(self) -> types.ServerCapabilities:
        """Tools, if there are any. The list does not change while a built-in server runs."""
        tools = types.ToolsCapability(list_changed=False) if "tools/list" in self._methods else None
        return types.ServerCapabilities(tools=tools)

    @property
    def server_info_stamp(self) -> dict[str, object]:
        """A fresh dictionary each time: the loop writes it into results."""
        return {"name": self._name, "version": self._version}

    def get_request_handler(self, method: str) -> MethodEntry | None:
        return self._methods.get(method)

    def get_notification_handler(self, method: str) -> None:
        return None

    def create_initialization_options(self) -> InitializationOptions:
        return InitializationOptions(
            server_name=self._name,
            server_version=self._version,
            capabilities=self.capabilities,
            instructions=self._instructions,
        )

    async def serve(
        self, read_stream: ReadStream[SessionMessage | Exception], write_stream: WriteStream[SessionMessage]
    ) -> None:
        """Serve one client until it disconnects, in the protocol version it starts with."""
        server = cast("Server[dict[str, object]]", self)
        options = self.create_initialization_options()
        await serve_dual_era_loop(server, read_stream, write_stream, lifespan_state={}, init_options=options)

    async def _ping(self, context: Context, params: types.RequestParams) -> types.EmptyResult:
        return types.EmptyResult()

    async def _discover(self, context: Context, params: types.RequestParams) -> types.DiscoverResult:
        return types.DiscoverResult(
            supported_versions=list(MODERN_PROTOCOL_VERSIONS),
            capabilities=self.capabilities,
            instructions=self._instructions,
        )


READINESS_TOOL = "readiness"

Readiness = Callable[[], Awaitable[str | None]]
"""What is missing, as one sentence with the command that mends it; None when nothing is."""


class ReadinessResult(Result):
    ready: bool
    missing: str | None = Field(default=None, description="What is missing, and the command that mends it")


class ReadinessTool:
    """Asked by the hub after the start and with every health check; `/status` shows the answer."""

    def __init__(self, ask: Readiness) -> None:
        self._ask = ask

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False, audience="hub")
    async def readiness(self) -> ReadinessResult:
        """Tell whether everything this server needs is there."""
        missing = await self._ask()
        return ReadinessResult(ready=missing is None, missing=missing)


FAILPOINTS = ("server.before_tool", "server.after_tool")


_log = logging.getLogger(__name__)
_BEFORE, _AFTER = FAILPOINTS

MAX_RESULT_BYTES = 1_000_000


class ToolServer:
    """A named set of tools. Nothing a tool raises ends the server, and nothing internal reaches the caller."""

    def __init__(
        self,
        name: str,
        tools: Iterable[object],
        *,
        instructions: str = "",
        max_result_bytes: int = MAX_RESULT_BYTES,
        on_close: Callable[[], Awaitable[None]] | None = None,
        readiness: Readiness | None = None,
    ) -> None:
        """`on_close` is awaited once, for a bounded time, when the other side has hung up. `readiness` tells what is
        missing, if anything is; the tools are listed all the same, and each says what to do."""
        self.name = name
        self.instructions = instructions or None
        self._on_close = on_close
        self.tools = collect_tools([*tools, *([ReadinessTool(readiness)] if readiness is not None else [])])
        self._max_result_bytes = max_result_bytes
        self.keep_out_of_logs: Callable[[Iterable[str]], None] | None = None
        """Receives the secrets of a call before anything can be logged."""
        methods = {
            "tools/list": MethodEntry(types.PaginatedRequestParams, self._list),
            "tools/call": MethodEntry(types.CallToolRequestParams, self.call),
        }
        self.protocol = MethodRegistry(name, __version__, self.instructions, methods)

    async def close(self) -> None:
        """Release what the tools hold open."""
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            await on_close()

    def list_tools(self) -> types.ListToolsResult:
        """Its answer to `tools/list`, built on each call: it is rarely asked for twice, and large."""
        return types.ListToolsResult(tools=[_to_mcp_tool(tool) for tool in self.tools.values()])

    async def _list(self, context: Context, params: types.PaginatedRequestParams) -> types.ListToolsResult:
        return self.list_tools()

    async def call(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Call a tool. Failures are answered, never raised."""
        call = read_call(context.meta, context.session.report_progress)
        if call.secrets and self.keep_out_of_logs is not None:
            self.keep_out_of_logs(call.secrets)
        with use_trace(accept_trace(call.trace_id)):
            enter_call(call)
            try:
                declared = self._find(params.name)
                failpoint(_BEFORE)
                result = await declared.call(dict(params.arguments or {}))
                answer = success(result, self._max_result_bytes)
                failpoint(_AFTER)
            except Exception as error:  # noqa: BLE001  the edge: the caller gets a sentence, the log the traceback
                return to_failure(error, self.name, params.name)
            return answer

    def _find(self, name: str) -> DeclaredTool:
        declared = self.tools.get(name)
        if declared is None:
            close = difflib.get_close_matches(name, self.tools, n=3)
            hint = f"Did you mean {' or '.join(close)}?" if close else f"There are {', '.join(self.tools)}."
            raise UnknownTool(f"{self.name} has no tool called {name[:100]!r}.", hint=hint)
        return declared


def to_failure(error: Exception, server: str, tool: str) -> types.CallToolResult:
    """The answer to a call that failed; to be made inside the call's trace."""
    trace_id = current_trace()
    if isinstance(error, AnnabelleError):
        _log.info("%.100r: %s (%s)", tool, error.message, error.code)
        return failure(error, trace_id)
    _log.error("%s failed", tool, exc_info=error)
    internal = AnnabelleError(
        f"{tool} failed because of an internal error.",
        hint=f"The log of the {server} server has the details under {trace_id}.",
    )
    return failure(internal, trace_id)


def _to_mcp_tool(tool: DeclaredTool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema(),
        output_schema=tool.output_schema(),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.annotations.read_only,
            destructive_hint=tool.annotations.destructive,
            idempotent_hint=tool.annotations.idempotent,
            open_world_hint=tool.annotations.open_world,
        ),
        _meta=None if tool.audience == "everyone" else {META_KEY: {"audience": tool.audience}},
    )
