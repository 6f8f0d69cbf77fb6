"""`/browser`: whether a browser can be used, and what was done with it last."""

from __future__ import annotations

from typing import Final

from annabelle.hub.commands.command import Command, CommandAnswer, CommandCall, CommandInfo
from annabelle.hub.skills.skill_service import format_moment
from annabelle.store import tool_calls

_SERVER: Final = "web"
_SHOWN: Final = 5


class BrowserCommand(Command):
    info = CommandInfo(
        name="browser",
        summary="Whether the browser can be used, and what was done with it last.",
        examples=("/browser",),
        admin=True,
        scope="manage",
    )

    async def run(self, call: CommandCall) -> CommandAnswer:
        self.expect_no_words(call)
        server = next((one for one in self.deps.status.toolbox.servers() if one.name == _SERVER), None)
        if server is None:
            return CommandAnswer("The browser is switched off here (WEB_MCP_ENABLED).")
        state = "ready" if server.available else server.state
        why = server.missing or server.last_error
        lines = [f"The browser's server is {state}{f': {why}' if why else '.'}"]
        tools = [one.name for one in self.deps.status.toolbox.tools().tools if one.server == _SERVER]
        calls = await self.deps.storage.database.read(lambda conn: tool_calls.list_latest_calls(conn, tools, _SHOWN))
        lines += [
            f"{format_moment(one.started_at, self.deps.services.skills.time_zone)}: {one.tool} ({one.state})"
            for one in calls
        ]
        return CommandAnswer("\n".join(lines if calls else [*lines, "It was not used yet."]))
