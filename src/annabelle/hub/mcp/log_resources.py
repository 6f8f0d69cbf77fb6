"""Log files as resources: the last part of each, masked once more, for the owner alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import mcp_types as types

from annabelle.core.errors import NotAllowed, NotFound
from annabelle.core.log_tail import read_log_tail
from annabelle.hub.base import HubBase
from annabelle.hub.mcp.own_tools import McpCaller

_SCHEME: Final = "annabelle://logs/"
_MOST_BYTES: Final = 64_000
_TYPE: Final = "text/plain"


class LogResources:
    def __init__(self, base: HubBase) -> None:
        self._folder, self._redact = base.home.logs, base.redact

    async def list_logs(self, caller: McpCaller) -> types.ListResourcesResult:
        """Nothing, for anybody but the owner."""
        found = await asyncio.to_thread(self._find) if caller.may_manage else {}
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=f"{_SCHEME}{name}", name=name, title=f"Log of {name}", mime_type=_TYPE)
                for name in found
            ]
        )

    async def read_log(self, caller: McpCaller, uri: str) -> types.ReadResourceResult:
        if not caller.may_manage:
            raise NotAllowed("Only the owner may read the logs.", hint="Use a token of the owner's with all scopes.")
        # Looked up by name, so no path can be made of it.
        path = (await asyncio.to_thread(self._find)).get(uri.removeprefix(_SCHEME))
        if path is None or not uri.startswith(_SCHEME):
            raise NotFound("There is no such resource.", hint="resources/list names them.")
        text = self._redact(await asyncio.to_thread(read_log_tail, path, _MOST_BYTES))
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=_TYPE, text=text)])

    def _find(self) -> dict[str, Path]:
        return {path.stem: path for path in sorted(self._folder.glob("*.log"))}
