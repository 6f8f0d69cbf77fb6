"""`annabelle ask`: one question, one answer."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import typer

from annabelle.cli.conversation import Conversation
from annabelle.cli.hub_client import HubClient
from annabelle.cli.hub_session import hub_for_a_while
from annabelle.cli.options import DEFAULT_CHAT, Agent, Chat, Json, New, command_app
from annabelle.cli.output import print_json, print_line
from annabelle.cli.patience import Patience
from annabelle.core.errors import CallerMistake
from annabelle.core.home import Home
from annabelle.core.ids import new_id

app = command_app()


@app.command()
def ask(
    text: Annotated[list[str], typer.Argument(help="The question; - reads it from standard input.")],
    chat: Chat = DEFAULT_CHAT,
    new: New = False,
    agent: Agent = None,
    json: Json = False,
) -> None:
    """Ask one question and print the answer. Starts Annabelle for the time of it when it does not run."""
    question = sys.stdin.read() if text == ["-"] else " ".join(text)
    if not question.strip():
        raise CallerMistake("There is no question.", hint='Try: annabelle ask "What can you do?"')
    home = Home.from_environment()
    with hub_for_a_while(home):
        asyncio.run(_ask(home, question, new_id("chat") if new else chat, agent, json))


async def _ask(home: Home, question: str, chat: str, agent: str | None, json: bool) -> None:
    async with HubClient.of(home) as client:
        conversation = Conversation(client, chat, agent)
        with Patience("Annabelle is thinking"):
            answer = await conversation.answer(question)
        if json:
            print_json({"answer": answer, "messageId": conversation.message_id, "threadId": conversation.thread_id})
        else:
            print_line(answer)
