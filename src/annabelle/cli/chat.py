"""`annabelle`: start everything and talk."""

from __future__ import annotations

import sys

import typer

from annabelle.cli.interactive import talk
from annabelle.cli.options import DEFAULT_CHAT, Agent, Chat, Json, New, command_app
from annabelle.cli.piped import answer_lines
from annabelle.core.home import Home
from annabelle.core.ids import new_id

app = command_app()


@app.command()
def chat(chat: Chat = DEFAULT_CHAT, new: New = False, agent: Agent = None, json: Json = False) -> None:
    """Talk to Annabelle. Starts everything that is needed, and stops at the end what it has started.

    Lines piped in are answered one by one. Without a terminal and without a line, it serves until it is stopped.
    """
    home = Home.from_environment()
    chat_id = new_id("chat") if new else chat
    # sys.stdin is None when the descriptor was closed before we came.
    if sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty() and not json:  # pyright: ignore[reportUnnecessaryComparison]
        talk(home, chat_id, agent)
        return
    raise typer.Exit(answer_lines(home, chat_id, agent, json=json))
