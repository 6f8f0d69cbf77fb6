"""`annabelle ask`: one question, one answer."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from annabelle.cli.approval_prompt import WAITING_EXIT, ApprovalPrompter
from annabelle.cli.conversation import Conversation, ConversationAnswer
from annabelle.cli.hub_client import CliHubClient, find_hub
from annabelle.cli.hub_process import temporary_hub
from annabelle.cli.options import DEFAULT_CHAT, Agent, Chat, Json, New, command_app
from annabelle.cli.output import print_json, print_line
from annabelle.cli.spinner import Spinner
from annabelle.core.errors import CallerMistake
from annabelle.core.home import Home
from annabelle.core.ids import new_id
from annabelle.core.tools import JsonObject

app = command_app()


@app.command()
def ask(
    text: Annotated[list[str], typer.Argument(help="The question; - reads it from standard input.")],
    chat: Chat = DEFAULT_CHAT,
    new: New = False,
    agent: Agent = None,
    json: Json = False,
) -> None:
    """Ask one question and print the answer. Starts Annabelle for the time of it when it does not run.

    When Annabelle needs your yes first, you are asked; where nobody can be asked, the question is printed and the exit
    code is 6.
    """
    question = sys.stdin.read() if text == ["-"] else " ".join(text)
    if not question.strip():
        raise CallerMistake("There is no question.", hint='Try: annabelle ask "What can you do?"')
    home = Home.from_environment()
    with temporary_hub(home), asyncio.Runner() as runner:
        client = CliHubClient(find_hub(home))
        try:
            asking = _QuestionRun(runner, Conversation(client, new_id("chat") if new else chat, agent))
            settled = asking.print_as_json(question) if json else asking.print_as_text(question)
        finally:
            runner.run(client.__aexit__())
    if not settled:
        raise typer.Exit(WAITING_EXIT)


@dataclass(frozen=True, slots=True)
class _QuestionRun:
    """Runs one question. The print methods return False if the turn waits for an approval."""

    runner: asyncio.Runner
    conversation: Conversation

    def print_as_json(self, question: str) -> bool:
        answer = self._run_with_spinner(self.conversation.answer(question))
        said: JsonObject = {"answer": answer.text}
        if answer.asked:
            said["approvals"] = answer.asked
        print_json({**said, "messageId": self.conversation.message_id, "threadId": self.conversation.thread_id})
        return not answer.asked

    def print_as_text(self, question: str) -> bool:
        answer = self._run_with_spinner(self.conversation.answer(question))
        if not answer.asked or not _is_interactive():
            print_line(answer.text)
            return not answer.asked
        return ApprovalPrompter(self.runner, self.conversation.client).until_settled(answer.asked, self._go_on)

    def _go_on(self, message_id: str) -> Sequence[str]:
        answer = self._run_with_spinner(self.conversation.answer_of(message_id))
        if not answer.asked:
            print_line(answer.text)
        return answer.asked

    def _run_with_spinner(self, answering: Coroutine[object, object, ConversationAnswer]) -> ConversationAnswer:
        with Spinner("Annabelle is thinking"):
            return self.runner.run(answering)


def _is_interactive() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()
