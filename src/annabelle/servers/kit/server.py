"""A server: its tools, listed and called over MCP, with every failure turned into an answer."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Awaitable, Callable, Iterable

import mcp_types as types

from annabelle import __version__
from annabelle.core.errors import AnnabelleError, UnknownTool
from annabelle.core.failpoints import failpoint
from annabelle.core.trace import accept_trace, current_trace, traced
from annabelle.servers.kit.call import META_KEY, enter_call, read_call
from annabelle.servers.kit.declare import DeclaredTool, collect
from annabelle.servers.kit.failpoints import FAILPOINTS
from annabelle.servers.kit.readiness import Readiness, ReadinessTool
from annabelle.servers.kit.registry import Context, Entry, Registry
from annabelle.servers.kit.result import failure, success

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
        self.tools = collect([*tools, *([ReadinessTool(readiness)] if readiness is not None else [])])
        self._max_result_bytes = max_result_bytes
        self.keep_out_of_logs: Callable[[Iterable[str]], None] | None = None
        """Told the secrets a call brings along, before anything can be written down."""
        methods = {
            "tools/list": Entry(types.PaginatedRequestParams, self._list),
            "tools/call": Entry(types.CallToolRequestParams, self.call),
        }
        self.protocol = Registry(name, __version__, self.instructions, methods)

    async def close(self) -> None:
        """Let go of what the tools hold open."""
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            await on_close()

    def listing(self) -> types.ListToolsResult:
        """Its answer to `tools/list`, made anew: who asks once does not make the process keep it."""
        return types.ListToolsResult(tools=[_spec(tool) for tool in self.tools.values()])

    async def _list(self, context: Context, params: types.PaginatedRequestParams) -> types.ListToolsResult:
        return self.listing()

    async def call(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Call one of the tools. Whatever happens, there is an answer."""
        call = read_call(context.meta, context.session.report_progress)
        if call.secrets and self.keep_out_of_logs is not None:
            self.keep_out_of_logs(call.secrets)
        with traced(accept_trace(call.trace_id)):
            enter_call(call)
            try:
                declared = self._find(params.name)
                failpoint(_BEFORE)
                result = await declared.call(dict(params.arguments or {}))
                answer = success(result, self._max_result_bytes)
                failpoint(_AFTER)
            except Exception as error:  # noqa: BLE001  the edge: the caller gets a sentence, the log the traceback
                return refused(error, self.name, params.name)
            return answer

    def _find(self, name: str) -> DeclaredTool:
        declared = self.tools.get(name)
        if declared is None:
            close = difflib.get_close_matches(name, self.tools, n=3)
            hint = f"Did you mean {' or '.join(close)}?" if close else f"There are {', '.join(self.tools)}."
            raise UnknownTool(f"{self.name} has no tool called {name[:100]!r}.", hint=hint)
        return declared


def refused(error: Exception, server: str, tool: str) -> types.CallToolResult:
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


def _spec(tool: DeclaredTool) -> types.Tool:
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
