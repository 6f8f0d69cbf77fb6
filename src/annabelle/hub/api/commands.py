"""`GET /commands`: the commands a person may give in a chat, for completion and menus."""

from __future__ import annotations

from annabelle.hub.api.endpoint import ApiAnswer, ApiRouter, Caller, TheHub, document

router = ApiRouter("commands")


class CommandView(ApiAnswer):
    """One command: said as a message, `/name` and what `usage` shows."""

    name: str
    usage: str
    summary: str
    admin: bool


class CommandList(ApiAnswer):
    commands: list[CommandView]


@router.get("/commands", **document("The commands of the chat"))
async def list_commands(hub: TheHub, caller: Caller) -> CommandList:
    """Those that you may give, in the order of /help."""
    offered = hub.conversations.gate.commands.infos(caller.user_id)
    return CommandList(commands=[CommandView.from_row(info) for info in offered])
