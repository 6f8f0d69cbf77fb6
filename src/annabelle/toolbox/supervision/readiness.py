"""Asks one of our own servers what it lacks; a server that does not answer is not thereby lacking anything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import cast

from annabelle.core.tools import CallContext, JsonObject, ToolSpec
from annabelle.toolbox.connections.connection import Connection, call_meta
from annabelle.toolbox.protocol.errors import AnswerTooLarge, RpcError

TOOL = "readiness"
_CALLER = CallContext(caller="hub", user_id="owner")


def answers_for_itself(specs: Iterable[ToolSpec]) -> bool:
    """Whether a server offers to tell. An external server's tool of that name is just a tool."""
    return any(spec.original_name == TOOL and spec.audience == "hub" for spec in specs)


async def what_is_missing(connection: Connection, seconds: float) -> str | None:
    """One sentence with the command that mends it, or None."""
    try:
        async with asyncio.timeout(seconds):
            answer = await connection.call_tool(TOOL, {}, call_meta(_CALLER, ours=True))
    except (TimeoutError, AnswerTooLarge, RpcError):
        return None
    structured = answer.result.get("structuredContent")
    missing = cast("JsonObject", structured).get("missing") if isinstance(structured, dict) else None
    return missing if isinstance(missing, str) and missing else None
