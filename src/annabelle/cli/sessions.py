"""`annabelle sessions`: lists conversations and clears one."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from annabelle.cli.hub_client import get_rows, post_json
from annabelle.cli.options import Json, command_app, run_by_default
from annabelle.cli.output import clean, print_outcome, print_rows

Thread = Annotated[str, typer.Argument(help="Id of the conversation, as annabelle sessions lists it.")]

app = command_app("List your conversations, or start one afresh.")


@run_by_default(app)
@app.command("list")
def list_sessions(json: Json = False) -> None:
    """List your conversations, the one used last first."""
    found = get_rows("/threads", "threads")
    rows = [
        (str(one["id"]), clean(f"{one['channel']} {one['chatId']}"), str(one["agentId"]), str(one["updatedAt"])[:16])
        for one in found
    ]
    empty = "Nothing was said yet. Begin with: annabelle chat"
    print_rows({"sessions": found}, ("SESSION", "CHAT", "AGENT", "LAST USED"), rows, empty, json=json)


@app.command()
def clear(session: Thread, json: Json = False) -> None:
    """Archive what was said in a conversation and start it afresh. Annabelle can still search the archive."""
    cleared = post_json(f"/threads/{quote(session, safe='')}/clear", {})
    sentence = "This conversation starts afresh; what was said is archived."
    print_outcome({"cleared": cleared["id"]}, sentence, json=json)
