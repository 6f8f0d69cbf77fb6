"""A server that lists its tools from what was kept, and puts them together with the first call.

Most servers are never asked on most days. Until one is, its process holds neither its tools nor their libraries. The
few that every message needs put them together when the start is over, so that the first message need not wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

import mcp_types as types

from annabelle import __version__
from annabelle.core.tools import JsonObject
from annabelle.core.trace import accept_trace, traced
from annabelle.servers.kit.call import read_call
from annabelle.servers.kit.listing import Listing
from annabelle.servers.kit.readiness import TOOL as READINESS
from annabelle.servers.kit.readiness import Readiness, ReadinessTool
from annabelle.servers.kit.registry import Context, Entry, Registry
from annabelle.servers.kit.result import success
from annabelle.servers.kit.server import MAX_RESULT_BYTES, ToolServer, refused

_log = logging.getLogger(__name__)


class ListedServer:
    """Seen from outside, a `ToolServer`. What it lacks it can say before it is put together."""

    def __init__(
        self,
        listing: Listing,
        build: Callable[[], ToolServer],
        readiness: Readiness | None,
        *,
        soon_seconds: float | None = None,
    ) -> None:
        """With `soon_seconds` the tools are put together that long after they were listed, asked or not."""
        self.name = listing.name
        self.keep_out_of_logs: Callable[[Iterable[str]], None] | None = None
        self._listing, self._build = listing, build
        self._readiness = None if readiness is None else ReadinessTool(readiness)
        self._soon_seconds = soon_seconds
        self._whole: ToolServer | None = None
        methods = {
            "tools/list": Entry(types.PaginatedRequestParams, self._list),
            "tools/call": Entry(types.CallToolRequestParams, self._call),
        }
        self.protocol = Registry(listing.name, __version__, listing.instructions, methods)

    async def close(self) -> None:
        if self._whole is not None:
            await self._whole.close()

    async def _list(self, context: Context, params: types.PaginatedRequestParams) -> JsonObject:
        if self._soon_seconds is not None:
            asyncio.get_running_loop().call_later(self._soon_seconds, self._get_ready)
            self._soon_seconds = None
        return self._listing.result()

    async def _call(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        call = read_call(context.meta, context.session.report_progress)
        with traced(accept_trace(call.trace_id)):
            try:
                if params.name == READINESS and self._whole is None and self._readiness is not None:
                    return success(await self._readiness.readiness(), MAX_RESULT_BYTES)
                server = self._put_together()
            except Exception as error:  # noqa: BLE001  the edge: the caller gets a sentence, the log the traceback
                return refused(error, self.name, params.name)
            return await server.call(context, params)

    def _get_ready(self) -> None:
        try:
            self._put_together()
        except Exception as error:  # noqa: BLE001  whoever calls is told, and the log then has the traceback
            _log.warning("%s can not be put together yet: %s", self.name, type(error).__name__)

    def _put_together(self) -> ToolServer:
        if self._whole is None:
            self._whole = self._build()
            self._whole.keep_out_of_logs = self.keep_out_of_logs
        return self._whole
