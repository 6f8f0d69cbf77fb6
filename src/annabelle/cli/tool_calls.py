"""Tools as terminal commands call them: by name, with an answer or the error it ended with."""

from __future__ import annotations

import asyncio

from annabelle.cli.hub_client import HubClient, error_from
from annabelle.core.errors import AnnabelleError
from annabelle.core.home import Home
from annabelle.core.tools import JsonObject, ToolResult

CALL_SECONDS = 600.0


async def call_tool(client: HubClient, name: str, arguments: JsonObject) -> ToolResult:
    """The tool's result, which may be an error."""
    body: JsonObject = {"name": name, "arguments": arguments}
    return ToolResult.model_validate(await client.post("/tools/call", body, timeout=CALL_SECONDS))


def succeeded(result: ToolResult) -> ToolResult:
    """The result again; raises the error of a tool that failed, so that it leaves with the right exit code."""
    if result.is_error:
        raise error_from(result.error) if result.error is not None else AnnabelleError(result.text)
    return result


def use_tool(name: str, /, **arguments: object) -> ToolResult:
    """One call on a connection of its own. What is None is left out."""

    async def call() -> ToolResult:
        async with HubClient.of(Home.from_environment()) as client:
            return await call_tool(client, name, {key: value for key, value in arguments.items() if value is not None})

    return succeeded(asyncio.run(call()))
